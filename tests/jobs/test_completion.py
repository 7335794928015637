"""A shell completes names of groups and topics from the workspace that is asked."""

from __future__ import annotations

from pathlib import Path

import pyarrow.parquet as pq
import pytest
from click.shell_completion import ShellComplete

from jobs.cli.main import cli


def completed(*arguments: str | Path, word: str = "") -> list[str]:
    """Return what a shell shows for the word that is begun after some arguments."""
    shell = ShellComplete(cli, {}, "groupscope", "_GROUPSCOPE_COMPLETE")
    return [each.value for each in shell.get_completions([*map(str, arguments)], word)]


@pytest.mark.parametrize("option", ["--group", "--exclude-group"])
def test_groups_of_the_workspace(failover_workspace: Path, option: str) -> None:
    assert completed("lag", failover_workspace, option, word="parcel-") == ["parcel-router"]
    names = pq.read_table(failover_workspace / "state" / "groups", columns=["group_id"])
    assert completed("lag", failover_workspace, option) == sorted(names["group_id"].to_pylist())


def test_topics_that_were_committed_to(failover_workspace: Path) -> None:
    found = completed("describe", failover_workspace, "--topic", word="par")
    assert "parcels" in found
    assert all(each.startswith("par") for each in found)


def test_nothing_where_there_is_no_workspace(failover_dump: Path, tmp_path: Path) -> None:
    for place in (failover_dump, tmp_path / "none"):
        assert completed("lag", place, "--group", word="p") == []
    assert completed("lag", "--group", word="p") == []


def test_commands_and_options_as_ever(failover_workspace: Path) -> None:
    assert completed(word="rep") == ["replay", "report"]
    assert "--history" in completed("lag", failover_workspace, word="--hi")
