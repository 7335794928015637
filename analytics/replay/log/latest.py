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
_WORD_BITS = 6
"""A bigint has room for 2**6 neighbouring offsets."""


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


def last_record(offset: Column, is_tombstone: Column) -> Column:
    """One number for both, whose maximum is that of the later record: see `value_at`.

    It has room for offsets below 2**62.
    """
    twice = F.shiftleft(offset, 1)
    return twice.bitwiseOR(is_tombstone.cast("bigint"))


def value_at(last: Column) -> Column:
    """Return the offset of a `last_record`, null where that is a tombstone."""
    return F.when(last.bitwiseAND(F.lit(1)) == 0, F.shiftright(last, 1))


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


def records_among(records: DataFrame, places: DataFrame) -> DataFrame:
    """Look very many records of one table up, without moving any of them.

    The places are sent to every task as bits, one row for 64 neighbouring offsets.

    Args:
        records: A decoded table, with `partition` and `offset`.
        places: `coordinator_partition` and `record_offset`, nothing else.

    Returns:
        The columns of both, for the places that exist.
    """
    bit = (F.col("record_offset") % (1 << _WORD_BITS)).cast("int")
    words = places.groupBy(
        "coordinator_partition", F.shiftright("record_offset", _WORD_BITS).alias("word")
    ).agg(F.bit_or(F.call_function("shiftleft", F.lit(1).cast("bigint"), bit)).alias("bits"))
    at = (F.col("partition") == F.col("coordinator_partition")) & (
        F.shiftright("offset", _WORD_BITS) == F.col("word")
    )
    is_meant = F.getbit("bits", (F.col("offset") % (1 << _WORD_BITS)).cast("int")) == 1
    return (
        records.join(F.broadcast(words), at, "inner")
        .where(is_meant)
        .withColumn("record_offset", F.col("offset"))
        .drop("word", "bits")
    )
