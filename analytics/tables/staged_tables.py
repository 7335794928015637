"""Tables on their way into a workspace: equal bytes for equal rows."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.parquet as pq
from pyarrow import fs

from analytics.tables.stored_tables import folder_of
from analytics.workspace import Part, open_location

if TYPE_CHECKING:
    from analytics.tables.parted_table import PartedTable
    from analytics.workspace import Staging


def write_rows(staging: Staging, name: str, rows: pa.Table) -> Part:
    """Write a table that is here."""
    filesystem, path = staging.workspace.filesystem, staged_path(staging, name)
    filesystem.create_dir(path.rpartition("/")[0], recursive=True)
    pq.write_table(rows, path, filesystem=filesystem)
    return part_of(name, path, rows.num_rows)


def write_in_order(staging: Staging, name: str, rows: PartedTable) -> Part:
    """Write a table that may be too large to be held, in its order."""
    if rows.condition is None and len(rows.parts) == 1:
        (part,) = rows.parts
        return (
            _copied(staging, name, part)
            if isinstance(part, str)
            else write_rows(staging, name, part)
        )
    filesystem, path = staging.workspace.filesystem, staged_path(staging, name)
    filesystem.create_dir(path.rpartition("/")[0], recursive=True)
    count = 0
    with pq.ParquetWriter(path, rows.schema, filesystem=filesystem) as writer:
        for each in rows.pieces():
            writer.write_table(each)
            count += each.num_rows
    return part_of(name, path, count)


def _copied(staging: Staging, name: str, location: str) -> Part:
    filesystem, path = staging.workspace.filesystem, staged_path(staging, name)
    filesystem.create_dir(path.rpartition("/")[0], recursive=True)
    source, place = open_location(location)
    fs.copy_files(place, path, source_filesystem=source, destination_filesystem=filesystem)
    with filesystem.open_input_file(path) as file:
        return part_of(name, path, pq.read_metadata(file).num_rows)


def staged_file(staging: Staging, name: str) -> str:
    """Return where in the workspace a table is until it is published."""
    return f"{staging.name}/{name}.parquet"


def staged_path(staging: Staging, name: str) -> str:
    """Return the same, as the workspace's filesystem has it."""
    return staging.workspace.path(staged_file(staging, name))


def part_of(name: str, path: str, rows: int) -> Part:
    """Return the file of a table as what is published."""
    return Part(folder_of(name), path, rows)
