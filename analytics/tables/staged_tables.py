"""Tables on their way into a workspace: equal bytes for equal rows."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.parquet as pq
from pyarrow import fs

from analytics.locations import make_folder, open_location
from analytics.tables.stored_tables import folder_of
from analytics.workspace import Part

if TYPE_CHECKING:
    from analytics.tables.parted_table import PartedTable
    from analytics.workspace import Staging


def write_rows(staging: Staging, name: str, rows: pa.Table) -> Part:
    """Write a table that is here."""
    return _written(staging, name, name, rows)


def _written(staging: Staging, file: str, name: str, rows: pa.Table) -> Part:
    filesystem, path = _place_for(staging, file)
    pq.write_table(without_labels(rows), path, filesystem=filesystem)
    return part_of(name, path, rows.num_rows)


def without_labels(rows: pa.Table) -> pa.Table:
    """Return rows without what the metadata of files says that they were read of.

    Arrow hands on the metadata of the first file of a table, and writes it into others: they would
    say that their rows are of the groups of that file (`GroupBucket`).
    """
    return rows.replace_schema_metadata(None)


def write_parts(staging: Staging, name: str, rows: PartedTable) -> list[Part]:
    """Write a table that may be too large to be held, a file for each of its parts; at least one.

    Each file is in order; who needs the order of all of them sorts, or merges.
    """
    if rows.condition is not None or not rows.parts:
        return [_write_pieces(staging, name, rows)]
    several = [name] if len(rows.parts) == 1 else [f"{name}-{n}" for n in range(len(rows.parts))]
    return [
        _copied(staging, file, name, part)
        if isinstance(part, str)
        else _written(staging, file, name, part)
        for file, part in zip(several, rows.parts, strict=True)
    ]


def _write_pieces(staging: Staging, name: str, rows: PartedTable) -> Part:
    filesystem, path = _place_for(staging, name)
    return part_of(name, path, _write_in_order(rows, filesystem, path))


def write_parquet(rows: PartedTable, location: str) -> None:
    """Write a table into one file, in its order, as its pieces come.

    Raises:
        OSError: It cannot be written.
        WorkspaceError: A part cannot be read.
    """
    filesystem, path = open_location(location)
    make_folder(filesystem, path.rpartition("/")[0])
    _write_in_order(rows, filesystem, path)


def _write_in_order(rows: PartedTable, filesystem: fs.FileSystem, path: str) -> int:
    """Return how many rows were written."""
    count, schema = 0, rows.schema.remove_metadata()
    with pq.ParquetWriter(path, schema, filesystem=filesystem) as writer:
        for each in rows.pieces():
            writer.write_table(each.cast(schema))
            count += each.num_rows
    return count


def _copied(staging: Staging, file: str, name: str, location: str) -> Part:
    filesystem, path = _place_for(staging, file)
    source, place = open_location(location)
    fs.copy_files(place, path, source_filesystem=source, destination_filesystem=filesystem)
    with filesystem.open_input_file(path) as written:
        return part_of(name, path, pq.read_metadata(written).num_rows)


def _place_for(staging: Staging, name: str) -> tuple[fs.FileSystem, str]:
    """Return where a file goes, in a folder that is there."""
    filesystem, path = staging.workspace.filesystem, staged_path(staging, name)
    make_folder(filesystem, path.rpartition("/")[0])
    return filesystem, path


def staged_file(staging: Staging, name: str) -> str:
    """Return where in the workspace a table is until it is published."""
    return f"{staging.name}/{name}.parquet"


def staged_path(staging: Staging, name: str) -> str:
    """Return the same, as the workspace's filesystem has it."""
    return staging.workspace.path(staged_file(staging, name))


def part_of(name: str, path: str, rows: int) -> Part:
    """Return the file of a table as what is published."""
    return Part(folder_of(name), path, rows)
