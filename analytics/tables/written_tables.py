"""Tables on their way into a workspace: one sorted file each, equal bytes for equal rows."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow.parquet as pq
from pyarrow import fs
from pyspark.sql import functions as F

from analytics.tables.staged_tables import part_of, staged_path
from schemas import table, tables

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import DataFrame

    from analytics.workspace import Part, Staging


def collected(frame: DataFrame, name: str) -> pa.Table:
    """Bring a table here, sorted by its key."""
    # Unless told, Spark looks through the stack at every step of the query for where it was made.
    frame.sparkSession.sparkContext.setLocalProperty("callSite.long", name)
    rows = frame.toArrow()
    key = table(name).key if name in tables() else rows.column_names
    return rows.sort_by([(column, "ascending") for column in key])


def write_frame(staging: Staging, name: str, frame: DataFrame) -> Part:
    """Write a table of any size: Spark sorts it, and no more than a row group of it is ever here.

    Spark's own file is only copied from: it lists the encodings of a column in an order that
    differs between runs.
    """
    order = [F.asc_nulls_last(column) for column in table(name).key]
    ordered = frame.repartition(1).sortWithinPartitions(*order)
    ordered.write.parquet(f"{staging.location}/{name}")
    filesystem, path = staging.workspace.filesystem, staged_path(staging, name)
    folder = fs.FileSelector(staging.workspace.path(f"{staging.name}/{name}"))
    (written,) = (
        each.path for each in filesystem.get_file_info(folder) if each.path.endswith(".parquet")
    )
    with pq.ParquetFile(written, filesystem=filesystem) as source:
        with pq.ParquetWriter(path, source.schema_arrow, filesystem=filesystem) as target:
            for number in range(source.num_row_groups):
                target.write_table(source.read_row_group(number))
        return part_of(name, path, source.metadata.num_rows)
