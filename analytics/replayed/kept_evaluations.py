"""Evaluations that are kept in a workspace, beside those of other questions to the same dump."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from pyarrow import fs

from analytics.errors import CannotTellError, WorkspaceError
from analytics.tables.parted_table import parted
from analytics.tables.staged_tables import write_parts
from analytics.workspace import EVALUATIONS, FOLDERS, Part, Workspace

if TYPE_CHECKING:
    import pyarrow as pa

    from analytics.replayed.replayed_workspace import ReplayedWorkspace
    from schemas.manifest import EvaluationEntry, Manifest


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
            manifest = _of_dump(replayed.manifest)
        earlier = manifest.get("evaluations", {})
        parts = [
            part
            for part in (_stored_parts(space) if is_kept else ())
            if (name := part.table.rpartition("/")[2]) in earlier and name not in tables
        ]
        kept = {name: parted(tables, name) for name in tables}
        parts += [part for name, rows in kept.items() for part in write_parts(staging, name, rows)]
        made: dict[str, EvaluationEntry] = {
            name: {
                "as_of": replayed.as_of,
                "kafka_version": replayed.release,
                "rows": rows.num_rows,
            }
            for name, rows in kept.items()
        }
        manifest["evaluations"] = {**earlier, **made}
        staging.publish(parts, [EVALUATIONS] if is_kept else FOLDERS, manifest)
    except BaseException:
        staging.discard()
        raise


def forget_evaluations(space: Workspace) -> None:
    """Delete the evaluations of a workspace, and leave the rest as it is."""
    manifest = space.manifest()
    if manifest.pop("evaluations", None) is not None:
        space.prepare().publish([], [EVALUATIONS], manifest)


def _manifest_there(space: Workspace, replayed: ReplayedWorkspace) -> Manifest | None:
    """Return the manifest of a workspace that was asked, or holds the same records.

    Others may have kept their answers meanwhile. None is any other workspace, and none at all.

    Raises:
        WorkspaceError: The workspace was asked, and a run that was cut off has written into it
            since: nobody shall vouch for what it left.
    """
    is_asked = space.is_same_as(replayed.tables.workspace)
    try:
        there = space.manifest()
    except (WorkspaceError, CannotTellError):
        if is_asked:
            raise
        return None
    return there if is_asked or _of_dump(there) == _of_dump(replayed.manifest) else None


def _of_dump(manifest: Manifest) -> Manifest:
    """Return what a manifest says of a dump, without what was made of it."""
    of_dump = manifest.copy()
    of_dump.pop("replay", None)
    of_dump.pop("evaluations", None)
    of_dump.pop("files", None)
    return of_dump


def _stored_parts(space: Workspace) -> list[Part]:
    """Return the files of evaluations that are there, in the order in which they are numbered.

    What a file system lists is in any order: files in another one would be moved.
    """
    selector = fs.FileSelector(space.path(EVALUATIONS), allow_not_found=True, recursive=True)
    paths = sorted(each.path for each in space.filesystem.get_file_info(selector))
    return [
        Part(f"{EVALUATIONS}/{each.split('/')[-2]}", each, 0)
        for each in paths
        if each.endswith(".parquet")
    ]
