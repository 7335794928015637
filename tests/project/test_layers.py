"""Imports go down only, and what must be quick to start imports nothing heavy."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

HEAVY = {"great_expectations", "numpy", "pandas", "pyarrow", "pyspark"}


def test_the_contracts_hold(repository: Path) -> None:
    lint = Path(sys.executable).with_name("lint-imports")
    run = subprocess.run(
        [str(lint), "--no-cache"], cwd=repository, capture_output=True, text=True, check=False
    )
    assert run.returncode == 0, run.stdout


@pytest.mark.parametrize("arguments", [["--help"], ["--version"], ["no-such-command"]])
def test_the_command_answers_without_loading_what_it_does_not_need(
    arguments: list[str], repository: Path
) -> None:
    program = (
        "import sys\n"
        "from jobs.main import run\n"
        f"run({arguments!r})\n"
        f"print(sorted({HEAVY!r} & set(sys.modules)), file=sys.stderr)\n"
    )
    ran = subprocess.run(
        [sys.executable, "-c", program],
        cwd=repository,
        capture_output=True,
        text=True,
        check=True,
    )
    assert ran.stderr.splitlines()[-1] == "[]"
