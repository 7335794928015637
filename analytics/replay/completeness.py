"""Whether the dump shows all that the broker knew of a group, and what it lacks otherwise.

A lost record can matter to a group only if it lies behind what the group is known from: the record
that is the whole of a classic group, or the end of the life before the present one.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark.sql import functions as F

from analytics.replay.coverage import Coverage

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

NO_GROUP_RECORD = "the group's own record is not in the dump"
_OFFSETS = "__consumer_offsets"


def with_completeness(rows: DataFrame, coverage: Coverage) -> DataFrame:
    """Add `complete` and `missing` to groups.

    Args:
        rows: Has `coordinator_partition`, `group_type`, `record_offset` and `known_from`.
        coverage: What the dump holds.
    """
    missing = F.concat_ws("; ", _without_record(), *_records_lost(coverage))
    return rows.withColumn("missing", F.when(missing != "", missing)).withColumn(
        "complete", F.col("missing").isNull()
    )


def _without_record() -> Column:
    unnamed = F.col("record_offset").isNull() & (F.col("group_type") != "simple")
    return F.when(unnamed, NO_GROUP_RECORD)


def _records_lost(coverage: Coverage) -> list[Column]:
    starts = {
        partition: start
        for (topic, partition), start in coverage.complete_from.items()
        if topic == _OFFSETS and start > 0
    }
    if not starts:
        return []
    listed = F.array(*(F.lit(starts.get(each)) for each in range(max(starts) + 1)))
    start = F.get(listed.cast("array<bigint>"), F.col("coordinator_partition"))
    partition = F.col("coordinator_partition").cast("string")
    words = F.concat(
        F.lit(f"records of {_OFFSETS}-"),
        partition,
        F.lit(" below offset "),
        start.cast("string"),
        F.lit(" are missing"),
    )
    # The record at `known_from` is there; those between it and the start may not be.
    return [F.when(F.col("known_from") + 1 < start, words)]
