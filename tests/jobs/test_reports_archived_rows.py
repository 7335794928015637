"""Reports of users about archived rows, as the installed command answers them."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from pathlib import Path

    from tests.conftest import Groupscope

VOUCHED = ("--assume", "no-transactions", "--assume", "complete-archive")


@pytest.fixture
def cases(repository: Path) -> Path:
    return repository / "tests" / "cases" / "reports"


def test_an_audit_comes_to_its_end_and_is_read_again(
    groupscope: Groupscope, cases: Path, tmp_path: Path
) -> None:
    out = tmp_path / "audited"
    result = groupscope("audit", cases / "archived-audit" / "rows.jsonl", "--out", out)
    assert result.returncode in (0, 3), result.stderr
    assert (out / "report" / "index.html").is_file()
    assert json.loads((out / "summary.json").read_text())
    inspected = groupscope("inspect", out)
    assert (inspected.returncode, "Archived rows" in inspected.stdout) == (0, True)
    report = groupscope("report", out, "--format", "text")
    assert "3 archived rows" in report.stdout, report.stderr


def test_a_row_without_a_partition_is_named_and_counted(
    groupscope: Groupscope, cases: Path, tmp_path: Path
) -> None:
    out = tmp_path / "decoded"
    result = groupscope("decode", cases / "row-without-partition", "--out", out)
    assert result.returncode == 0, result.stderr
    assert "a.jsonl, row 2: it has no partition; not decoded" in result.stderr
    assert "1 decoded" in result.stdout
    assert "undecoded: 1 unplaced_row" in result.stdout
    # The row that has no partition may be a later commit of any group.
    described = groupscope("describe", out, *VOUCHED)
    assert described.returncode == 3


def test_values_under_another_name_are_no_deletions(
    groupscope: Groupscope, cases: Path, tmp_path: Path
) -> None:
    case = cases / "rows-without-value-column"
    result = groupscope("decode", case, "--out", tmp_path / "decoded")
    assert result.returncode == 2
    assert "missing: value, timestamp" in result.stderr
    assert "found: key, offset, partition, payload, topic, ts" in result.stderr


def test_rows_of_a_sink_are_of_the_partition_that_is_named(
    groupscope: Groupscope, cases: Path
) -> None:
    rows = cases / "sink-aiven-jsonl" / "__consumer_offsets-9-100.jsonl"
    named = ("--topic-partition", "__consumer_offsets-9")
    assert groupscope("inspect", rows, *named).returncode == 0
    result = groupscope("describe", rows, *named, *VOUCHED, "--format", "json")
    assert [row["committed_offset"] for row in json.loads(result.stdout)["rows"]] == [46]


def test_of_exports_of_checkpoints_the_latest_counts(groupscope: Groupscope, cases: Path) -> None:
    case = cases / "flink-file-each"
    result = groupscope(
        *("region", case / "export", "--dump", case / "dump", "--end-offsets", case / "ends.csv"),
        *("--table", "region_seek_plan", "--format", "json"),
    )
    rows = json.loads(result.stdout)["rows"]
    assert [(row["seek_offset"], row["commit_is"]) for row in rows] == [
        (120, "equal"),
        (80, "equal"),
    ]


def test_a_commit_of_another_source_is_told(groupscope: Groupscope, cases: Path) -> None:
    table = cases / "hudi-source-changed" / "table"
    result = groupscope("region", table, "--checkpoint-group", "lake", "--format", "json")
    assert result.returncode == 0, result.stderr
    assert "20260921100000000.commit" in result.stderr
    assert [row["checkpoint_sequence_id"] for row in json.loads(result.stdout)["rows"]] == [
        20260921110000000,
        20260921120000000,
    ]
