"""A zombie that commits its old offset over and over, beside the member that goes on."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from jobs.cli.main import cli

CASE = Path(__file__).parents[1] / "cases" / "reports" / "two-writers"
GROUP = ("--group", "connect-lake-orders-coord", "--format", "json")


def run(*arguments: object) -> Result:
    return CliRunner().invoke(cli, [*map(str, arguments)], standalone_mode=False)


@pytest.fixture(scope="module")
def workspace(tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("writers") / "replayed"
    run("replay", CASE / "dump", "--out", out)
    return out


def told(*arguments: object) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(run(*arguments, *GROUP).stdout)
    return found


def test_two_writers_are_told_and_nobody_is_blamed(workspace: Path) -> None:
    steps = [
        each
        for each in told("timeline", workspace)["verdicts"]
        if each["verdict"] == "rewound_by_member"
    ]
    assert len(steps) == 12
    assert {each["became"] for each in steps} == {100}
    assert {each["confidence"] for each in steps} == {"medium"}
    assert all(each["reason"].startswith("two writers: 12 steps back to") for each in steps)


def test_what_had_been_read_is_not_lost(workspace: Path) -> None:
    (row,) = told("lag", workspace, "--end-offsets", CASE / "ends.csv")["rows"]
    assert (row["lag"], row["lost_offsets"], row["verdict"]) == (70, 0, "below_log_start")
    assert "160 had been committed before" in row["reason"]


def test_the_timeline_says_that_nothing_unread_was_deleted(workspace: Path) -> None:
    answer = told("timeline", workspace, "--end-offsets", CASE / "ends.csv")
    (below,) = [each for each in answer["verdicts"] if each["verdict"] == "below_log_start"]
    assert "160 had been committed before, so nothing unread was deleted" in below["reason"]
