"""Questions to a dump, asked by this process without Spark: the tables that commands keep."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
from click.testing import CliRunner

from jobs.cli.main import cli
from tests.support.decoded_here import decoded_here
from tests.support.dump_folder import DumpFolder

ReplayedDump = Callable[[DumpFolder], Path]
"""What gives the replayed workspace of a dump."""
Rows = list[dict[str, Any]]
MAY_END_WITH = {0, 1, 3}
"""Done, findings, cannot tell."""


def replayed_for_questions(dump: DumpFolder, folder: Path) -> Path:
    """Decode and replay all copies of a dump; return the workspace."""
    return replayed_copies([f"{copy}={dump.root / copy}" for copy in dump.copies], folder)


def replayed_copies(inputs: Sequence[str], folder: Path) -> Path:
    """Decode and replay log directories; return the workspace."""
    decoded_here(inputs, folder / "decoded")
    _run("replay", str(folder / "decoded"), "--out", str(folder / "replayed"))
    return folder / "replayed"


def answered(workspace: Path, question: str, *options: str) -> dict[str, Rows]:
    """Ask a replayed workspace; return the tables that the answer is made of, by name."""
    _run(question, str(workspace), "--out", str(workspace), *options)
    return {
        each.name: pq.read_table(each).to_pylist() for each in (workspace / "evaluations").iterdir()
    }


def _run(*arguments: str) -> None:
    result = CliRunner().invoke(cli, list(arguments))
    assert isinstance(result.exception, SystemExit | None), (arguments, result.exception)
    assert result.exit_code in MAY_END_WITH, (arguments, result.output, result.exception)
