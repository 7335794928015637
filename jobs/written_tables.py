"""Tables on their way into a workspace: one sorted file each, equal bytes for equal rows."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.parquet as pq
from pyarrow import fs
from pyspark.sql import functions as F

from analytics.workspace import Part
from jobs.stored_tables import folder_of
from schemas import table, tables

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from analytics.workspace import Staging


def collected(frame: DataFrame, name: str) -> pa.Table:
    """Bring a table here, sorted by its key."""
    # Unless told, Spark looks through the stack at every step of the query for where it was made.
    frame.sparkSession.sparkContext.setLocalProperty("callSite.long", name)
    rows = frame.toArrow()
    key = table(name).key if name in tables() else rows.column_names
    return rows.sort_by([(column, "ascending") for column in key])


def write_rows(staging: Staging, name: str, rows: pa.Table) -> Part:
    """Write a table that is here."""
    filesystem, path = staging.workspace.filesystem, _path(staging, name)
    filesystem.create_dir(path.rpartition("/")[0], recursive=True)
    pq.write_table(rows, path, filesystem=filesystem)
    return _part(name, path, rows.num_rows)


def write_frame(staging: Staging, name: str, frame: DataFrame) -> Part:
    """Write a table of any size: Spark sorts it, and no more than a row group of it is ever here.

    Spark's own file is only copied from: it lists the encodings of a column in an order that
    differs between runs.
    """
    order = [F.asc_nulls_last(column) for column in table(name).key]
    ordered = frame.repartition(1).sortWithinPartitions(*order)
    ordered.write.parquet(f"{staging.location}/{name}")
    filesystem, path = staging.workspace.filesystem, _path(staging, name)
    folder = fs.FileSelector(staging.workspace.path(f"{staging.name}/{name}"))
    (written,) = (
        each.path for each in filesystem.get_file_info(folder) if each.path.endswith(".parquet")
    )
    with pq.ParquetFile(written, filesystem=filesystem) as source:
        with pq.ParquetWriter(path, source.schema_arrow, filesystem=filesystem) as target:
            for number in range(source.num_row_groups):
                target.write_table(source.read_row_group(number))
        return _part(name, path, source.metadata.num_rows)


def staged_file(staging: Staging, name: str) -> str:
    """Return where in the workspace a table is until it is published."""
    return f"{staging.name}/{name}.parquet"


def _path(staging: Staging, name: str) -> str:
    return staging.workspace.path(staged_file(staging, name))


def _part(name: str, path: str, rows: int) -> Part:
    return Part(folder_of(name), path, rows)
