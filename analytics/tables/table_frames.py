"""Tables of a workspace as DataFrames, by their contracts."""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

import pyarrow.dataset as ds

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from analytics.workspace import Workspace
    from schemas.table_contract import Table

ROWS_AS_VALUES = 2_000
"""Up to so many rows are handed to Spark as values instead of files.

Opening files again in every query costs more than such a table holds, and only of values does the
optimizer know that there are none: it then leaves out what an empty table would be joined to.
"""


def table_frame(
    spark: SparkSession, workspace: Workspace, folder: str, contract: Table
) -> DataFrame:
    """Return a table of a workspace.

    Args:
        spark: The session.
        workspace: Where it is.
        folder: Its folder there ("decoded/offset_commit").
        contract: Its columns; those that its files lack are null.
    """
    from pyspark.sql.pandas.types import to_arrow_schema  # noqa: PLC0415 - heavy, as Spark is
    from pyspark.sql.types import StructType  # noqa: PLC0415

    schema = cast("StructType", StructType.fromDDL(contract.ddl(not_null=False)))
    files = ds.dataset(
        workspace.path(folder),
        schema=to_arrow_schema(schema, timezone="UTC"),
        filesystem=workspace.filesystem,
        format="parquet",
    )
    if files.count_rows() <= ROWS_AS_VALUES:
        values: DataFrame = spark.createDataFrame(files.to_table(), schema)
        return values
    return spark.read.schema(schema).parquet(workspace.table(folder))
