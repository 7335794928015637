"""The instant asked about: the end of each internal partition's log, or a time."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

from pyspark.sql import functions as F

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

Decoded = Mapping[str, "DataFrame"]
"""Decoded tables by name; every one that the schemas declare is there, possibly without rows."""

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


@dataclass(frozen=True)
class AsOf:
    """Which records count.

    Attributes:
        offsets: End offset (exclusive) by topic and partition; partitions not named are taken to
            their end.
        timestamp_ms: Epoch milliseconds; a record counts if its append time is not later. One
            without a time (message format 0) counts, as nothing says that it is later.
    """

    offsets: Mapping[tuple[str, int], int] = field(default_factory=dict)
    timestamp_ms: int | None = None

    @property
    def is_end(self) -> bool:
        """Whether everything counts."""
        return not self.offsets and self.timestamp_ms is None


END = AsOf()


def cut(frame: DataFrame, as_of: AsOf) -> DataFrame:
    """Keep the records of a decoded table that count at the instant.

    Args:
        frame: Any table with `topic`, `partition`, `offset` and `timestamp`.
        as_of: The instant.
    """
    for counts in _conditions(as_of):
        frame = frame.where(counts)
    return frame


def cut_all(decoded: Decoded, as_of: AsOf) -> dict[str, DataFrame]:
    """Cut every decoded table."""
    return {name: cut(frame, as_of) for name, frame in decoded.items()}


def _conditions(as_of: AsOf) -> list[Column]:
    conditions = []
    if as_of.offsets:
        conditions.append(_below_end(as_of.offsets))
    if as_of.timestamp_ms is not None:
        last = F.lit(_EPOCH + timedelta(milliseconds=as_of.timestamp_ms))
        conditions.append(F.col("timestamp").isNull() | (F.col("timestamp") <= last))
    return conditions


def _below_end(offsets: Mapping[tuple[str, int], int]) -> Column:
    """Look the end up in one array a topic: a long chain of conditions would be slow per record."""
    end: Column = F.lit(None).cast("bigint")
    for topic in sorted({topic for topic, _ in offsets}):
        ends = {partition: end for (name, partition), end in offsets.items() if name == topic}
        listed = F.array(*(F.lit(ends.get(each)) for each in range(max(ends) + 1)))
        here = F.get(listed.cast("array<bigint>"), F.col("partition"))
        end = F.when(F.col("topic") == topic, here).otherwise(end)
    return end.isNull() | (F.col("offset") < end)
