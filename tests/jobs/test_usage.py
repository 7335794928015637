"""The command `usage` on the bundled failover: what the files hold, to the byte."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow.parquet as pq

if TYPE_CHECKING:
    from tests.conftest import Groupscope


def answer(groupscope: Groupscope, *arguments: str | Path) -> dict[str, Any]:
    result = groupscope("usage", *arguments, "--format", "json", "--quiet")
    assert result.returncode == 0, result.stderr
    found: dict[str, Any] = json.loads(result.stdout)
    return found


def test_bytes_come_out_even_with_the_files(
    groupscope: Groupscope, failover_workspace: Path, failover_dump: Path
) -> None:
    found = answer(groupscope, failover_workspace)

    files = [
        path.stat().st_size
        for pattern in ("*/__*-*/*.log", "*/__*-*/*.checkpoint")
        for path in failover_dump.glob(pattern)
        if path.name != "00000000000000000000-0000000000.checkpoint"
    ]
    assert found["comes_out_even"]
    assert found["file_bytes"] == sum(files)
    assert sum(row["file_bytes"] for row in found["partition_usage"]) == sum(files)


def test_live_commits_are_the_committed_offsets(
    groupscope: Groupscope, failover_workspace: Path
) -> None:
    rows = answer(groupscope, failover_workspace, "--by", "group")["rows"]
    committed = pq.read_table(failover_workspace / "state" / "committed_offsets").num_rows

    by_type = answer(groupscope, failover_workspace)["rows"]
    (commits,) = (row for row in by_type if row["record_type"] == "offset_commit")
    assert commits["live_records"] == committed == 81
    assert sum(row["records"] for row in rows) == sum(row["records"] for row in by_type)


def test_text_says_that_every_byte_is_accounted_for(
    groupscope: Groupscope, failover_workspace: Path
) -> None:
    result = groupscope("usage", failover_workspace, "--by", "partition", "--top", "3")

    assert result.returncode == 0
    assert "Every byte is accounted for" in result.stdout
    assert max(map(len, result.stdout.splitlines()[:-1])) <= 120


def test_one_group_is_shown_and_bytes_still_come_out_even(
    groupscope: Groupscope, failover_workspace: Path
) -> None:
    found = answer(groupscope, failover_workspace, "--group", "parcel-*", "--by", "group")

    groups = [row["group_id"] for row in found["rows"]]
    assert "parcel-router" in groups
    assert all(each.startswith("parcel-") for each in groups)
    assert found["comes_out_even"]
