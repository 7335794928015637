"""The installed command before any subcommand: help, version, completion, wrong calls."""

from __future__ import annotations

from pathlib import Path

from analytics.version import VERSION
from tests.conftest import Groupscope


def test_help_goes_to_stdout_and_lists_the_commands(installed: Groupscope) -> None:
    ran = installed("--help")
    assert ran.returncode == 0
    assert ran.stdout.startswith("Usage: groupscope")
    assert "Exit codes: 0 done" in ran.stdout
    assert ran.stderr == ""


def test_version(installed: Groupscope) -> None:
    ran = installed("--version")
    assert (ran.returncode, ran.stdout) == (0, f"groupscope, version {VERSION}\n")


def test_a_variable_named_like_the_version_changes_nothing(installed: Groupscope) -> None:
    ran = installed("--help", env={"GROUPSCOPE_VERSION": "1.2.3"})
    assert ran.returncode == 0
    assert ran.stdout.startswith("Usage:")


def test_an_unknown_command_is_called_wrongly(installed: Groupscope) -> None:
    ran = installed("inspekt")
    assert ran.returncode == 2
    assert ran.stdout == ""
    assert "No such command 'inspekt'" in ran.stderr


def test_without_a_command_the_help_is_shown_and_the_call_was_wrong(installed: Groupscope) -> None:
    ran = installed()
    assert ran.returncode == 2
    assert "Usage: groupscope" in ran.stderr


def test_a_shell_is_told_how_to_complete(installed: Groupscope) -> None:
    ran = installed(env={"_GROUPSCOPE_COMPLETE": "bash_source"})
    assert ran.returncode == 0
    assert "complete" in ran.stdout
    assert "_GROUPSCOPE_COMPLETE=bash_complete" in ran.stdout


def test_a_package_of_another_distribution_in_our_place_is_named(
    installed: Groupscope, tmp_path: Path
) -> None:
    stranger = tmp_path / "reports"
    stranger.mkdir()
    (stranger / "__init__.py").touch()
    ran = installed("--help", env={"PYTHONPATH": str(tmp_path)})
    assert ran.returncode == 3
    assert str(tmp_path) in ran.stderr
    assert "virtual environment of its own" in ran.stderr
    assert len(ran.stderr.splitlines()) == 1
