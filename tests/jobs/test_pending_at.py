"""What `timeline --to T` knows to be pending is what a replay at T has."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from click.testing import CliRunner, Result

from jobs.cli.main import cli

INSTANTS = (
    "2026-11-21T09:15:30Z",
    "2026-11-21T09:17:00Z",
    "2026-11-21T09:20:30Z",
    "2026-11-21T09:22:00Z",
)
Pending = set[tuple[str, str, int, str]]


def invoked(*arguments: str | Path) -> Result:
    result = CliRunner().invoke(cli, [str(each) for each in arguments], standalone_mode=False)
    assert result.exception is None, result.stderr
    return result


def of_timeline(workspace: Path, instant: str) -> Pending:
    result = invoked("timeline", workspace, "--group", "*", "--to", instant, "--format", "json")
    rows: list[dict[str, Any]] = json.loads(result.stdout)["verdicts"]
    return {
        (row["group_id"], row["topic"], row["partition"], row["record"])
        for row in rows
        if row["verdict"] == "pending"
    }


@pytest.mark.parametrize(
    "instant",
    [*INSTANTS[:2], *(pytest.param(each, marks=pytest.mark.long) for each in INSTANTS[2:])],
)
def test_a_timeline_up_to_an_instant_has_the_pending_offsets_of_a_replay_at_it(
    instant: str, failover_workspace: Path, tmp_path: Path
) -> None:
    invoked("replay", failover_workspace, "--as-of", instant, "--out", tmp_path / "then")
    rows = pq.read_table(tmp_path / "then" / "state" / "pending_offsets").to_pylist()
    assert of_timeline(failover_workspace, instant) == {
        (
            *(row[each] for each in ("group_id", "topic", "partition")),
            f"__consumer_offsets-{row['coordinator_partition']}@{row['record_offset']}",
        )
        for row in rows
    }


def test_every_table_that_a_timeline_reads_is_made_for_it(failover_dump: Path) -> None:
    """Without the other disks nothing says what elections of `__share_group_state` lost."""
    arguments = ("timeline", failover_dump / "broker-2", "--group", "*", "--format", "json")
    result = CliRunner().invoke(cli, [str(each) for each in arguments], standalone_mode=False)
    assert result.exception is None, result.stderr
    assert result.return_value == 3
