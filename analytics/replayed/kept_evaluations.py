"""Evaluations that are kept in a workspace, beside those of other questions to the same dump."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from pyarrow import fs

from analytics.errors import WorkspaceError
from analytics.tables.parted_table import parted
from analytics.tables.staged_tables import write_parts
from analytics.workspace import EVALUATIONS, FILES, FOLDERS, Part, Workspace

if TYPE_CHECKING:
    import pyarrow as pa

    from analytics.replayed.replayed_workspace import ReplayedWorkspace

_REPLAY = "replay"
_OF_QUESTIONS = frozenset({_REPLAY, EVALUATIONS, FILES})
"""Sections of a manifest that say what was made of a dump; all others say what it is."""


def keep_evaluations(
    space: Workspace, tables: Mapping[str, pa.Table], replayed: ReplayedWorkspace
) -> None:
    """Write tables into the workspace; the manifest says of which instant they are.

    What is there of another dump, or of other records of this one, goes: no later question may mix
    the two.
    """
    staging = space.prepare()
    try:
        manifest = _manifest_there(space, replayed)
        is_kept = manifest is not None
        if manifest is None:
            # State and history are elsewhere: nobody shall look for them here.
            manifest = {
                name: each for name, each in replayed.manifest.items() if name not in _OF_QUESTIONS
            }
        earlier = manifest.get(EVALUATIONS, {})
        parts = [
            part
            for part in (_stored_parts(space) if is_kept else ())
            if (name := part.table.rpartition("/")[2]) in earlier and name not in tables
        ]
        kept = {name: parted(tables, name) for name in tables}
        parts += [part for name, rows in kept.items() for part in write_parts(staging, name, rows)]
        said = {"as_of": replayed.as_of, "kafka_version": replayed.release}
        manifest[EVALUATIONS] = {
            **earlier,
            **{name: {**said, "rows": rows.num_rows} for name, rows in kept.items()},
        }
        staging.publish(parts, [EVALUATIONS] if is_kept else FOLDERS, manifest)
    except BaseException:
        staging.discard()
        raise


def forget_evaluations(space: Workspace) -> None:
    """Delete the evaluations of a workspace, and leave the rest as it is."""
    manifest = space.manifest()
    if manifest.pop(EVALUATIONS, None) is not None:
        space.prepare().publish([], [EVALUATIONS], manifest)


def _manifest_there(space: Workspace, replayed: ReplayedWorkspace) -> dict[str, Any] | None:
    """Return the manifest of a workspace that was asked, or holds the same records.

    Others may have kept their answers meanwhile. None is any other workspace, and none at all.
    """
    is_asked = space.is_same_as(replayed.tables.workspace)
    try:
        there = space.manifest()
    except WorkspaceError:
        return dict(replayed.manifest) if is_asked else None
    return there if is_asked or _of_dump(there) == _of_dump(replayed.manifest) else None


def _of_dump(manifest: Mapping[str, Any]) -> dict[str, Any]:
    return {name: each for name, each in manifest.items() if name not in _OF_QUESTIONS}


def _stored_parts(space: Workspace) -> list[Part]:
    """Return the files of evaluations that are there."""
    selector = fs.FileSelector(space.path(EVALUATIONS), allow_not_found=True, recursive=True)
    return [
        Part(f"{EVALUATIONS}/{each.path.split('/')[-2]}", each.path, 0)
        for each in space.filesystem.get_file_info(selector)
        if each.path.endswith(".parquet")
    ]
