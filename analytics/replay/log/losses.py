"""Whether a lost record may lie at a place in an internal partition: conditions on rows."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeVar

from pyspark.sql import functions as F

from analytics.dump.files.model import CONSUMER_OFFSETS
from analytics.dump.inspection.losses import Loss, lacks

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from pyspark.sql import Column, DataFrame

    from analytics.replay.log.coverage import Coverage

T = TypeVar("T")

HOME = "coordinator_partition"
_MOST_RANGES = 32
"""So many losses of a partition are looked at one by one; more are taken together."""


def with_missing(rows: DataFrame, missing: Column) -> DataFrame:
    """Add `complete` and `missing`, the reason in words; null or empty is complete."""
    return rows.withColumn("missing", F.when(missing != "", missing)).withColumn(
        "complete", F.col("missing").isNull()
    )


def may_be_superseded(coverage: Coverage, record: Column) -> Column:
    """Return why what a record says may not hold any more, null where it does.

    No lost record can have changed it where the record lies after all losses of its partition:
    neither a later commit or tombstone of the same key nor the marker of a transaction.

    Args:
        coverage: What the dump holds; rows have `coordinator_partition`.
        record: Offset of the record.
    """
    lost = coverage.losses_of_topic(CONSUMER_OFFSETS)
    last = {number: max(each.end for each in losses) for number, losses in lost.items()}
    text = F.concat(F.lit("a lost record may have changed it: "), _said(lost))
    return F.when(record < _number(last), text)


def uncompacted_from(coverage: Coverage) -> Column:
    """Return the offset from which on not even compaction took a record; 0 where it took none."""
    shown = {
        number: start
        for (topic, number), start in coverage.shown_from.items()
        if topic == CONSUMER_OFFSETS
    }
    return F.coalesce(_number(shown), F.lit(0))


def lost_between(coverage: Coverage, after: Column, before: Column) -> Column:
    """Return what the partition lacks where a lost record may lie between two offsets, else null.

    Args:
        coverage: What the dump holds; rows have `coordinator_partition`.
        after: Offset of the earlier record; -1 where there is none.
        before: Offset of the later one.
    """
    lost = coverage.losses_of_topic(CONSUMER_OFFSETS)
    if not lost:
        return F.lit(None).cast("string")
    ranges = {number: _ranges(losses) for number, losses in lost.items()}
    listed = ", ".join(
        "array(" + ", ".join(f"struct({a}L AS a, {b}L AS b)" for a, b in ranges[number]) + ")"
        if number in ranges
        else "CAST(NULL AS array<struct<a: bigint, b: bigint>>)"
        for number in range(max(ranges) + 1)
    )
    here = F.get(F.expr(f"array({listed})"), F.col(HOME))
    hit = F.exists(here, lambda loss: (loss["a"] < before) & (loss["b"] > after + 1))
    return F.when(F.coalesce(hit, F.lit(col=False)), _said(lost))


def _ranges(losses: Sequence[Loss]) -> list[tuple[int, int]]:
    ranges = [(each.first, each.end) for each in losses]
    if len(ranges) <= _MOST_RANGES:
        return ranges
    return [*ranges[: _MOST_RANGES - 1], (ranges[_MOST_RANGES - 1][0], ranges[-1][1])]


def _number(of_partition: Mapping[int, int]) -> Column:
    if not of_partition:
        return F.lit(None).cast("bigint")
    listed = F.array(*(F.lit(each) for each in _listed(of_partition)))
    return F.get(listed.cast("array<bigint>"), F.col(HOME))


def _said(lost: Mapping[int, Sequence[Loss]]) -> Column:
    if not lost:
        return F.lit(None).cast("string")
    words = {number: lacks(CONSUMER_OFFSETS, number, losses) for number, losses in lost.items()}
    return F.get(F.array(*(F.lit(each) for each in _listed(words))), F.col(HOME))


def _listed(of_partition: Mapping[int, T]) -> list[T | None]:
    return [of_partition.get(number) for number in range(max(of_partition) + 1)]
