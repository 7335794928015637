"""A dump replayed into the folder that is kept, where everything else is asked."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from jobs.runs.replay.replayed import replayed
from jobs.workspaces.copied_workspace import copy_workspace

if TYPE_CHECKING:
    from jobs.cli.console import Console


def replay_into_folder(
    console: Console,
    out: str,
    *,
    needs: Sequence[str],
    answers: Sequence[str],
    options: Mapping[str, Any],
) -> tuple[tuple[str, ...], int]:
    """Replay into a folder, or copy what was replayed into it.

    Args:
        console: Where it is told what is done.
        out: The folder.
        needs: Names of the tables that will be read.
        answers: Files in the folder that an earlier run wrote. They are removed: what it found is
            not what this one finds, should this one end early.
        options: Of `replayed`.

    Returns:
        The INPUTs, and the exit code: 3 where a part of them could not be read, which the folder
        itself is never.
    """
    with replayed(console, needs=needs, out=out, **options) as state:
        copy_workspace(state.tables.workspace, out)
        forget_answers(out, answers)
        return state.given, state.exit_code


def forget_answers(out: str, names: Sequence[str]) -> None:
    """Remove files of a folder that an earlier run wrote, as far as they are there."""
    for name in names:
        (Path(out) / name).unlink(missing_ok=True)


def of_folder(out: str, options: Mapping[str, Any]) -> dict[str, Any]:
    """Return the options of `replayed` that ask the folder: it is at the instant already."""
    return {**options, "inputs": (out,), "as_of": None, "ends": {}}
