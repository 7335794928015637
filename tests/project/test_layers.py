"""Imports go down only, and what must be quick to start imports nothing heavy."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import click
import pytest

from jobs.cli.main import cli

HEAVY = {"great_expectations", "numpy", "pandas", "pyarrow", "pyspark"}


def test_the_contracts_hold(repository: Path) -> None:
    lint = Path(sys.executable).with_name("lint-imports")
    run = subprocess.run(
        [str(lint), "--no-cache"], cwd=repository, capture_output=True, text=True, check=False
    )
    assert run.returncode == 0, run.stdout


def test_commands_do_not_compute_with_arrow_either(repository: Path) -> None:
    """Of an external package the contracts know only the name of the whole."""
    sources = (repository / "jobs").rglob("*.py")
    assert [each.name for each in sources if "pyarrow.compute" in each.read_text("utf-8")] == []


def loaded_by(repository: Path, *arguments: str) -> set[str]:
    """Run one command line in a fresh interpreter; return which heavy packages it loaded."""
    program = (
        "import sys\n"
        "from jobs.cli.main import run\n"
        f"run({list(arguments)!r})\n"
        f"print(*({HEAVY!r} & set(sys.modules)), file=sys.stderr)\n"
    )
    ran = subprocess.run(
        [sys.executable, "-c", program],
        cwd=repository,
        capture_output=True,
        text=True,
        check=True,
    )
    return set(ran.stderr.splitlines()[-1].split())


@pytest.mark.parametrize("argument", ["--help", "--version", "no-such-command"])
def test_the_command_answers_without_loading_what_it_does_not_need(
    argument: str, repository: Path
) -> None:
    assert loaded_by(repository, argument) == set()


@pytest.mark.parametrize("command", cli.list_commands(click.Context(cli)))
def test_the_help_of_every_command_answers_at_once(command: str, repository: Path) -> None:
    assert loaded_by(repository, command, "--help") <= {"numpy"}


def test_inspect_starts_neither_spark_nor_arrow(repository: Path, failover_dump: Path) -> None:
    assert loaded_by(repository, "inspect", str(failover_dump)) <= {"numpy"}
