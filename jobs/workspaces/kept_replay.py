"""A dump replayed into the folder that is kept, where everything else is asked.

A workspace that is given is copied into it: what is asked there leaves the given one alone.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from pyarrow import fs

from analytics.locations import make_folder
from analytics.tables.decoded_records import decoded_workspace
from analytics.workspace import (
    BEFORE_SWAPS,
    DATA_LOGS,
    DECODED,
    DIVERGED,
    EVALUATIONS,
    FOLDERS,
    PIECES,
    Workspace,
)
from jobs.workspaces.replayed import replayed

if TYPE_CHECKING:
    from jobs.cli.console import Console

_OF_RECORDS = (DECODED, DIVERGED, BEFORE_SWAPS, DATA_LOGS)


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
    return {**options, "inputs": (out,), "as_of": None, "ends": {}, "resume": None}


def copy_workspace(source: Workspace, target: str) -> None:
    """Copy the tables of a workspace into a folder; nothing where it is that folder.

    What another workspace left there goes. Evaluations are asked for anew. Records that were
    decoded there and replayed elsewhere stay. What tables were decoded of is copied, too, so that
    a later run goes on from the copy as from the workspace.

    Raises:
        OutputRefusedError: The folder has content that is not ours.
        WorkspaceError: Another run writes into it.
    """
    space = Workspace(target)
    if space.is_same_as(source):
        return
    manifest = source.manifest()
    manifest.pop("evaluations", None)
    kept = _OF_RECORDS if space.is_same_as(decoded_workspace(source)) else ()
    replaced = [name for name in FOLDERS if name not in kept]
    staging = space.prepare()
    try:
        for name in replaced:
            entry = source.filesystem.get_file_info(source.path(name))
            if name != EVALUATIONS and entry.type is fs.FileType.Directory:
                place = space.path(staging.published(name))
                make_folder(space.filesystem, place)
                fs.copy_files(
                    entry.path,
                    place,
                    source_filesystem=source.filesystem,
                    destination_filesystem=space.filesystem,
                )
        pieces = None if kept else source.read(PIECES)
        if pieces is not None:
            # Before the manifest that vouches for it.
            space.write(PIECES, pieces)
        staging.publish([], replaced, manifest)
    except BaseException:
        staging.discard()
        raise
