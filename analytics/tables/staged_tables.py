"""Arrow tables on their way into a workspace: one file each, equal bytes for equal rows."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow.parquet as pq

from analytics.tables.stored_tables import folder_of
from analytics.workspace import Part

if TYPE_CHECKING:
    import pyarrow as pa

    from analytics.workspace import Staging


def write_rows(staging: Staging, name: str, rows: pa.Table) -> Part:
    """Write a table that is here."""
    filesystem, path = staging.workspace.filesystem, staged_path(staging, name)
    filesystem.create_dir(path.rpartition("/")[0], recursive=True)
    pq.write_table(rows, path, filesystem=filesystem)
    return part_of(name, path, rows.num_rows)


def staged_file(staging: Staging, name: str) -> str:
    """Return where in the workspace a table is until it is published."""
    return f"{staging.name}/{name}.parquet"


def staged_path(staging: Staging, name: str) -> str:
    """Return the same, as the workspace's filesystem has it."""
    return staging.workspace.path(staged_file(staging, name))


def part_of(name: str, path: str, rows: int) -> Part:
    """Return the file of a table as what is published."""
    return Part(folder_of(name), path, rows)
