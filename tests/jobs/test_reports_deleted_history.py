"""History that retention took from the offsets topic, as users reported it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from jobs.cli.main import cli

CASE = Path(__file__).parents[1] / "cases" / "reports" / "offsets-topic-delete-policy"


def run(*arguments: object) -> Result:
    return CliRunner().invoke(cli, [*map(str, arguments)], standalone_mode=False)


@pytest.fixture(scope="module")
def workspace(tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("deleted") / "replayed"
    run("replay", CASE, "--out", out)
    return out


def test_inspect_says_that_records_were_deleted_and_not_compacted() -> None:
    told = run("inspect", CASE).stdout
    assert "RECORDS BELOW 500 DELETED, not compacted" in told
    assert "compaction never moves the log start" in " ".join(told.split())


def test_a_group_that_has_nothing_left_cannot_be_told_of(workspace: Path) -> None:
    """`user-76` belongs to the same internal partition, and no record of it is there."""
    for command in ("describe", "timeline", "lag", "expiration"):
        asked = run(command, workspace, "--group", "user-76", "--format", "json")
        assert asked.return_value == 3, command
        assert "deleted below the log start" in asked.stdout, command


def test_offsets_that_were_committed_since_are_told(workspace: Path) -> None:
    asked = run("describe", workspace, "--group", "billing", "--format", "json")
    assert asked.return_value == 3
    rows = json.loads(asked.stdout)["rows"]
    assert [(row["partition"], row["committed_offset"]) for row in rows] == [(0, 558), (1, 559)]


def test_the_timeline_calls_it_deleted(workspace: Path) -> None:
    asked = run("timeline", workspace, "--group", "billing")
    told = " ".join(asked.stdout.split())
    assert asked.return_value == 3
    assert "was compacted" not in told
    assert "history before offset 500 of __consumer_offsets-9" in told
    assert "was deleted below the log start" in told
