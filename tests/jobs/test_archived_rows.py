"""Questions to archived rows of a real dump, through the installed command: no guess is a fact."""

from __future__ import annotations

import csv
import gzip
import io
import json
import re
from itertools import count
from typing import TYPE_CHECKING, Any

import pytest

from analytics.replay.log.topic_homes import home_of
from tests.support.archived import rows_of_topics, write_parquet

if TYPE_CHECKING:
    from pathlib import Path

    from tests.conftest import Groupscope

PARTITIONS, LACKS_OFFSETS = 10, 9
"""Of the offsets topic; the markers of transactions are in the one, and no row shows them."""
Key = tuple[str, str, int]
RANGE = re.compile(
    r"it may be (?:any of \d+ offsets from (\d+) to (\d+)|(\d+)), or (none|\d+)(, or one that)?"
)


@pytest.fixture(scope="module")
def truth(repository: Path) -> dict[Key, int]:
    """What the surviving coordinators answered last."""
    tools = repository / "tests" / "data" / "dumps" / "kafka-4.3.1-failover" / "tools"
    with gzip.open(tools / "state.json.gz") as file:
        told = json.load(file)["committed_offsets"]
    return {(each["group_id"], each["topic"], each["partition"]): each["offset"] for each in told}


@pytest.fixture(scope="module")
def archive(failover_dump: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What Spark's Kafka source would have given after the election."""
    rows = rows_of_topics(failover_dump / "broker-2")
    return write_parquet(tmp_path_factory.mktemp("archive") / "rows.parquet", rows)


@pytest.fixture(scope="module")
def workspace(groupscope: Groupscope, archive: Path) -> Path:
    out = archive.parent / "workspace"
    result = groupscope("replay", archive, "--out", out)
    assert result.returncode == 0, result.stderr
    return out


def answer(groupscope: Groupscope, *arguments: object) -> tuple[int, dict[str, Any]]:
    result = groupscope(*arguments, "--format", "json")
    return result.returncode, json.loads(result.stdout)


def test_an_offset_that_is_told_is_what_the_coordinator_answered(
    groupscope: Groupscope, workspace: Path, truth: dict[Key, int]
) -> None:
    code, told = answer(groupscope, "describe", workspace)
    assert code == 3
    rows = {(row["group_id"], row["topic"], row["partition"]): row for row in told["rows"]}
    # Share groups have start offsets instead.
    known = {key: row for key, row in rows.items() if row.get("committed_offset") is not None}
    assert len(known) > len(truth) / 2
    for key, row in known.items():
        assert row["complete"]
        assert row["committed_offset"] == truth[key]
    assert truth.keys() <= rows.keys()


def test_of_others_it_is_said_what_they_may_be(
    groupscope: Groupscope, workspace: Path, truth: dict[Key, int]
) -> None:
    groups = ("billing-eos", "billing-ledger", "proof-of-delivery")
    asked = [part for group in groups for part in ("--group", group)]
    _, told = answer(groupscope, "describe", workspace, *asked)
    undecided = [row for row in told["rows"] if "do not show transactions" in str(row["missing"])]
    assert {row["group_id"] for row in undecided} == set(groups)
    for row in undecided:
        found = RANGE.search(row["missing"])
        assert found
        assert row["committed_offset"] is None
        least, most, one, before, lost = found.groups()
        value = truth.get((row["group_id"], row["topic"], row["partition"]))
        is_before = str(value) == before or (value is None and before == "none")
        is_after = value is not None and int(least or one) <= value <= int(most or one)
        assert lost or is_before or is_after, (row, value)


def test_text_says_so_in_the_row(groupscope: Groupscope, workspace: Path) -> None:
    result = groupscope("describe", workspace, "--group", "billing-ledger", "--wide")
    assert result.returncode == 3
    assert (
        "cannot tell: archived rows do not show transactions: it may be 41, or 1" in result.stdout
    )


def test_no_commit_that_may_not_count_is_a_rewind(groupscope: Groupscope, workspace: Path) -> None:
    result = groupscope(
        *("timeline", workspace, "--group", "billing-eos", "--group", "billing-ledger"),
        *("--table", "verdicts", "--format", "csv"),
    )
    assert result.returncode == 3
    verdicts = list(csv.DictReader(io.StringIO(result.stdout)))
    assert {each["verdict"] for each in verdicts} == {"cannot_tell"}
    assert "high" not in {each["confidence"] for each in verdicts}


def test_a_group_without_rows_is_not_said_not_to_exist(
    groupscope: Groupscope, workspace: Path
) -> None:
    names = (f"nobody-{number}" for number in count())
    nobody = next(name for name in names if home_of(name, PARTITIONS) == LACKS_OFFSETS)
    result = groupscope("describe", workspace, "--group", nobody)
    assert result.returncode == 3
    assert f"{nobody} is not in the records that can be read" in result.stderr


def test_usage_counts_archived_rows_and_tells_no_bytes(
    groupscope: Groupscope, workspace: Path
) -> None:
    code, found = answer(groupscope, "usage", workspace)

    assert code == 3
    assert any(
        "archived rows have neither batches nor files" in each for each in found["cannot_tell"]
    )
    (commits,) = (row for row in found["rows"] if row["record_type"] == "offset_commit")
    assert commits["records"] > 500
    assert commits["bytes"] is commits["live_bytes"] is commits["dead_bytes"] is None
    assert commits["live_records"] > 0
    assert all(row["file_bytes"] is None for row in found["partition_usage"])
    verdicts = {row["verdict"] for row in found["log_cleaning"]}
    assert verdicts <= {"cannot_tell", "not_compacted"}
    assert all(row["bytes_per_day"] is None for row in found["committers"])
