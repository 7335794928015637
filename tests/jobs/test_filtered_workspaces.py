"""A workspace that was made with `--group`: what it answers, and what it cannot tell."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from jobs.cli.main import cli

DUMP = Path(__file__).parents[2] / "examples" / "kafka-4.3.1-failover"
GROUP = ("--group", "parcel-router")


def run(*arguments: object) -> Result:
    return CliRunner().invoke(cli, [*map(str, arguments)], standalone_mode=False)


@pytest.fixture(scope="module")
def filtered(tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("filtered") / "replayed"
    run("replay", DUMP, *GROUP, "--out", out)
    return out


@pytest.mark.parametrize("command", ["describe", "lag"])
def test_a_filter_changes_nothing_of_what_it_holds(
    command: str, filtered: Path, failover_workspace: Path
) -> None:
    whole, part = (
        json.loads(run(command, each, *GROUP, "--format", "json").stdout)
        for each in (failover_workspace, filtered)
    )
    assert part["rows"] == whole["rows"]
    assert part["rows"]
    assert (whole["filters"], part["filters"]) == ({}, {"groups": ["parcel-router"]})


@pytest.mark.parametrize("command", ["list", "lag", "usage", "expiration"])
def test_a_question_beyond_the_filter_cannot_be_answered_whole(
    command: str, filtered: Path
) -> None:
    asked = run(command, filtered, "--format", "json")
    assert asked.return_value == 3
    assert "groups other than those of --group parcel-router" in asked.stderr
    assert json.loads(asked.stdout)["left_out"]


def test_a_group_that_was_left_out_is_not_said_to_be_none(filtered: Path) -> None:
    asked = run("describe", filtered, "--group", "depot")
    assert asked.return_value == 3
    assert "cannot tell" in asked.stderr
    assert "does not exist" not in asked.stderr


def test_topics_that_other_groups_may_read_are_not_called_unread(filtered: Path) -> None:
    for names in ((), GROUP):
        asked = run("lag", filtered, "--by", "topic", *names)
        assert "no group is known to read" not in asked.stdout
