"""A dump replayed into the folder that is kept, where everything else is asked."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from analytics.workspace import Workspace
from jobs.workspaces.copied_workspace import copy_workspace
from jobs.workspaces.replayed import replayed

if TYPE_CHECKING:
    from jobs.cli.console import Console


def replay_into_folder(
    console: Console,
    out: str,
    *,
    needs: Sequence[str],
    options: Mapping[str, Any],
) -> tuple[tuple[str, ...], int]:
    """Replay into a folder, or copy what was replayed into it.

    Files of answers of an earlier run are removed: what it found is not what this one finds,
    should this one end early.

    Args:
        console: Where it is told what is done.
        out: The folder.
        needs: Names of the tables that will be read.
        options: Of `replayed`.

    Returns:
        The INPUTs, and the exit code: 3 where a part of them could not be read, which the folder
        itself is never.
    """
    with replayed(console, needs=needs, out=out, **options) as state:
        copy_workspace(state.tables.workspace, out)
        Workspace(out).forget_answers()
        return state.inputs, state.exit_code


def of_folder(out: str, options: Mapping[str, Any]) -> dict[str, Any]:
    """Return the options of `replayed` that ask the folder: it is at the instant already."""
    return {**options, "inputs": (out,), "as_of": None, "ends": {}}
