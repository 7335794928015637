"""A workspace that is kept in another folder, too: what is asked of it there leaves it alone."""

from __future__ import annotations

from pyarrow import fs

from analytics.tables.decoded_workspace import decoded_workspace
from analytics.workspace import (
    BEFORE_SWAPS,
    DATA_LOGS,
    DECODED,
    DIVERGED,
    EVALUATIONS,
    FOLDERS,
    Workspace,
)

_OF_RECORDS = (DECODED, DIVERGED, BEFORE_SWAPS, DATA_LOGS)


def copy_workspace(source: Workspace, target: str) -> None:
    """Copy the tables of a workspace into a folder; nothing where it is that folder.

    What another workspace left there goes. Evaluations are asked for anew. Records that were
    decoded there and replayed elsewhere stay.

    Raises:
        OutputRefusedError: The folder has content that is not ours.
        WorkspaceError: Another run writes into it.
    """
    space = Workspace(target)
    if space.is_same_as(source):
        return
    manifest = {name: each for name, each in source.manifest().items() if name != EVALUATIONS}
    kept = _OF_RECORDS if space.is_same_as(decoded_workspace(source)) else ()
    replaced = [name for name in FOLDERS if name not in kept]
    staging = space.prepare()
    try:
        for name in replaced:
            entry = source.filesystem.get_file_info(source.path(name))
            if name != EVALUATIONS and entry.type is fs.FileType.Directory:
                place = space.path(staging.published(name))
                space.filesystem.create_dir(place, recursive=True)
                fs.copy_files(
                    entry.path,
                    place,
                    source_filesystem=source.filesystem,
                    destination_filesystem=space.filesystem,
                )
        staging.publish([], replaced, manifest)
    except BaseException:
        staging.discard()
        raise
