"""Evaluations that are kept in a workspace, beside those of other questions."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from pyarrow import fs

from analytics.errors import WorkspaceError
from analytics.tables.staged_tables import write_rows
from analytics.workspace import EVALUATIONS, Part, Workspace

if TYPE_CHECKING:
    import pyarrow as pa

    from analytics.library.replayed.replayed_workspace import ReplayedWorkspace


def keep_evaluations(
    space: Workspace, found: Mapping[str, pa.Table], replayed: ReplayedWorkspace
) -> None:
    """Write tables into the workspace; the manifest says of which instant they are."""
    staging = space.prepare()
    try:
        parts = [part for part in _kept(space) if part.table.rpartition("/")[2] not in found]
        parts += [write_rows(staging, name, rows) for name, rows in found.items()]
        manifest = dict(replayed.manifest)
        if space.root != replayed.tables.workspace.root:
            # State and history are elsewhere: nobody shall look for them here.
            manifest.pop("replay")
        said = {"as_of": replayed.as_of, "kafka_version": replayed.release}
        manifest[EVALUATIONS] = {
            **manifest.get(EVALUATIONS, {}),
            **_said_before(space),
            **{name: {**said, "rows": rows.num_rows} for name, rows in found.items()},
        }
        staging.publish(parts, [EVALUATIONS], manifest)
    except BaseException:
        staging.discard()
        raise


def _kept(space: Workspace) -> list[Part]:
    """Return the files of evaluations that are there."""
    selector = fs.FileSelector(space.path(EVALUATIONS), allow_not_found=True, recursive=True)
    return [
        Part(f"{EVALUATIONS}/{each.path.split('/')[-2]}", each.path, 0)
        for each in space.filesystem.get_file_info(selector)
        if each.path.endswith(".parquet")
    ]


def _said_before(space: Workspace) -> dict[str, Any]:
    """Return what the manifest there says of evaluations: others may have been kept meanwhile."""
    try:
        said: dict[str, Any] = space.manifest().get(EVALUATIONS, {})
    except WorkspaceError:
        return {}
    return said
