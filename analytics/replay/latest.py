"""The latest record of each key, which is an aggregation and never a loop.

Only offsets are aggregated: they are numbers, so Spark keeps them in a hash table. The records they
point to are then looked up, which costs one more read of the table and is several times faster than
sorting whole records.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from pyspark.sql import functions as F

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

NEVER = -1
"""An offset before any record."""


def last_offsets(records: DataFrame, key: Sequence[str]) -> DataFrame:
    """Offsets of the last value and the last tombstone of each key.

    Args:
        records: Columns of the key, `offset` and `is_tombstone`.
        key: What tells apart; in it the coordinator's partition.

    Returns:
        The key, `last_value` and `last_tombstone` (bigint, null where there is none).
    """
    offset, tombstone = F.col("offset"), F.col("is_tombstone")
    return records.groupBy(*key).agg(
        F.max(F.when(~tombstone, offset)).alias("last_value"),
        F.max(F.when(tombstone, offset)).alias("last_tombstone"),
    )


def later(offset: Column, than: Column) -> Column:
    """Whether an offset exists and is greater than another, which need not exist."""
    return F.coalesce(offset, F.lit(NEVER)) > F.coalesce(than, F.lit(NEVER))


def records_at(records: DataFrame, places: DataFrame) -> DataFrame:
    """Look records up.

    Args:
        records: A decoded table, with `partition` and `offset`.
        places: `coordinator_partition` and `record_offset`, each pair once, and whatever else.

    Returns:
        The columns of both, for the places that exist.
    """
    at = (F.col("partition") == F.col("coordinator_partition")) & (
        F.col("offset") == F.col("record_offset")
    )
    return records.join(places, at, "inner")
