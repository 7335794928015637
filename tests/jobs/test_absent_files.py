"""A file that is not there is a wrong call, whichever option names it: one line, exit code 2."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from tests.conftest import Groupscope

ABSENT = "no/such/place"
CALLS = {
    "end_offsets": ("lag", "--end-offsets", ABSENT),
    "config": ("expiration", "--config", ABSENT),
    "broker_config": ("expiration", "--broker-config", ABSENT),
    "against": ("describe", "--against", ABSENT),
    "topic_ids": ("lag", "--topic-ids", ABSENT),
    "lag_against": ("lag", "--against", ABSENT),
    "share_against": ("share", "--against", ABSENT),
    "lag_since": ("lag", "--since", ABSENT),
    "usage_since": ("usage", "--since", ABSENT),
}
"""A command and its option, asked of a workspace."""
AUDITS = ("--since", "--redact", "--expectations", "--end-offsets")


@pytest.mark.parametrize("name", CALLS)
def test_an_option_that_names_no_file(
    groupscope: Groupscope, failover_workspace: Path, name: str
) -> None:
    command, *options = CALLS[name]
    result = groupscope(command, failover_workspace, *options)
    assert result.returncode == 2, result.stderr
    assert ABSENT in result.stderr
    assert result.stdout == ""


def test_offsets_that_a_region_began_at(
    groupscope: Groupscope, repository: Path, failover_workspace: Path
) -> None:
    checkpoints = repository / "examples/region-checkpoints.jsonl"
    call = ("region", checkpoints, "--initial-offsets", ABSENT)
    result = groupscope(*call, "--dump", failover_workspace)
    assert (result.returncode, result.stdout) == (2, "")
    assert f"{ABSENT}: there is no such file" in result.stderr
    result = groupscope(*call)
    assert (result.returncode, result.stdout) == (2, "")
    assert "--initial-offsets needs --dump" in result.stderr


@pytest.mark.parametrize("option", AUDITS)
def test_an_option_of_an_audit_that_names_no_file(
    groupscope: Groupscope, failover_dump: Path, tmp_path: Path, option: str
) -> None:
    result = groupscope("audit", failover_dump, "--out", tmp_path / "out", option, ABSENT)
    assert result.returncode == 2, result.stderr
    assert ABSENT in result.stderr
    assert not (tmp_path / "out" / "manifest.json").exists()


@pytest.mark.parametrize("command", [["inspect"], ["lag"], ["report"], ["assign"], ["decode"]])
def test_an_input_that_is_not_there(
    groupscope: Groupscope, tmp_path: Path, command: list[str]
) -> None:
    more = ("--out", tmp_path / "out") if command == ["decode"] else ()
    result = groupscope(*command, ABSENT, *more)
    assert result.returncode == 2, result.stderr
    assert ABSENT in result.stderr
