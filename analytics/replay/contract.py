"""State tables have exactly the columns that their contracts declare, in that order."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark.sql import functions as F

from schemas import table

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


def as_table(frame: DataFrame, name: str) -> DataFrame:
    """Select and cast the columns of a table's contract.

    Args:
        frame: Has a column for each of the contract's, under its name.
        name: The table ("committed_offsets").
    """
    return frame.select(
        *(F.col(column.name).cast(column.type).alias(column.name) for column in table(name).columns)
    )
