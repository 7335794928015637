"""One settings file serves every command; `--fail-on` and `--max-undecoded` decide its code."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from tests.conftest import Groupscope

ASKING = ("describe", "list", "expiration", "balance", "rebalances", "lag", "share", "usage")
SEEN: dict[str, dict[str, Any]] = {
    "rebalances": {"rebalances": {"storm_epochs": 2, "storm_minutes": 600}},
    "lag": {"lag": {"burrow_allowed_lag": 1_000_000}},
    "usage": {"usage": {"commits_interval_seconds": 600}},
}


def settings(folder: Path, rules: dict[str, Any]) -> Path:
    path = folder / "settings.yaml"
    path.write_text(json.dumps({"rules": rules}), encoding="utf-8")
    return path


@pytest.mark.parametrize("command", SEEN)
def test_a_threshold_of_the_file_changes_the_answer(
    command: str, groupscope: Groupscope, failover_workspace: Path, tmp_path: Path
) -> None:
    config = settings(tmp_path, SEEN[command])
    ours, theirs = (
        groupscope(command, failover_workspace, "--format", "json", *more)
        for more in ((), ("--config", config))
    )
    assert ours.returncode in {0, 3}, ours.stderr
    assert theirs.returncode == ours.returncode, theirs.stderr
    assert ours.stdout != theirs.stdout


@pytest.mark.parametrize("command", ASKING)
def test_every_command_refuses_a_file_with_an_unknown_name(
    command: str, groupscope: Groupscope, failover_workspace: Path, tmp_path: Path
) -> None:
    config = settings(tmp_path, {"lag": {"stuck_minuts": 3}})
    result = groupscope(command, failover_workspace, "--config", config)
    assert result.returncode == 2
    assert "unknown threshold 'stuck_minuts'; did you mean 'stuck_minutes'?" in result.stderr


def test_a_finding_as_severe_as_asked_ends_with_1(
    groupscope: Groupscope, failover_workspace: Path
) -> None:
    asked = ("timeline", failover_workspace, "--group", "parcel-router")
    plain = groupscope(*asked)
    failing = groupscope(*asked, "--fail-on", "critical")
    assert (plain.returncode, failing.returncode) == (0, 1)
    assert plain.stdout == failing.stdout
    assert "--fail-on critical:" in failing.stderr


def test_a_finding_that_a_team_accepts_does_not(
    groupscope: Groupscope, failover_workspace: Path, tmp_path: Path
) -> None:
    config = tmp_path / "settings.yaml"
    entry = {"rule": "offsets_lost_by_election", "reason": "known", "owner": "me"}
    config.write_text(json.dumps({"suppressions": [{**entry, "until": "2099-01-01"}]}))
    asked = ("timeline", failover_workspace, "--group", "parcel-router", "--fail-on", "critical")
    assert groupscope(*asked, "--config", config).returncode == 0
