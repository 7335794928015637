"""Decoded tables cut at the instant asked about."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

from pyspark.sql import functions as F

from analytics.replay.log.instants import AsOf
from analytics.replay.log.timeless import timeless_ends
from schemas import record_types

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

Decoded = Mapping[str, "DataFrame"]
"""Decoded tables by name; every one that the schemas declare is there, possibly without rows."""

METADATA_TOPIC = "__cluster_metadata"
_SNAPSHOT = r"(\d{20})-\d{10}\.checkpoint$"
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def cut_all(decoded: Decoded, as_of: AsOf) -> dict[str, DataFrame]:
    """Cut every decoded table.

    A snapshot of the metadata log counts as a whole where all that it stands for counts.
    """
    metadata = {kind.table for kind in record_types(METADATA_TOPIC).values()}
    ends = {} if as_of.timestamp_ms is None else timeless_ends(decoded, _moment(as_of.timestamp_ms))
    place = F.coalesce(snapshot_end() - 1, F.col("offset"))
    return {
        name: _kept(frame, as_of, place if name in metadata else F.col("offset"), ends)
        for name, frame in decoded.items()
    }


def above_log_starts(
    decoded: Decoded, log_starts: Mapping[tuple[str, int], int]
) -> dict[str, DataFrame]:
    """Leave out records that were deleted before the end of the dump (``DeleteRecords``).

    Args:
        decoded: Tables that hold them too.
        log_starts: The log start offset by topic and partition, where it is not the first offset.
    """
    if not log_starts:
        return dict(decoded)
    start = F.coalesce(_looked_up(log_starts), F.lit(0))
    return {name: frame.where(F.col("offset") >= start) for name, frame in decoded.items()}


def snapshot_end() -> Column:
    """Return the end offset of the snapshot a record of the metadata log lies in, else null."""
    end = F.regexp_extract("segment", _SNAPSHOT, 1)
    return F.when(end != "", end.cast("bigint"))


def _moment(milliseconds: int) -> datetime:
    return _EPOCH + timedelta(milliseconds=milliseconds)


def _kept(
    frame: DataFrame, as_of: AsOf, offset: Column, timeless: Mapping[tuple[str, int], int]
) -> DataFrame:
    if as_of.offsets:
        frame = frame.where(_below_end(as_of.offsets, offset))
    if as_of.timestamp_ms is not None:
        last = F.lit(_moment(as_of.timestamp_ms))
        is_timeless = F.col("timestamp").isNull()
        if timeless:
            is_timeless &= _below_end(timeless, offset)
        frame = frame.where(is_timeless | (F.col("timestamp") <= last))
    return frame


def _below_end(offsets: Mapping[tuple[str, int], int], offset: Column) -> Column:
    end = _looked_up(offsets)
    return end.isNull() | (offset < end)


def _looked_up(offsets: Mapping[tuple[str, int], int]) -> Column:
    """Look an offset up in one array a topic: a chain of conditions would be slow per record."""
    end: Column = F.lit(None).cast("bigint")
    for topic in sorted({topic for topic, _ in offsets}):
        ends = {partition: end for (name, partition), end in offsets.items() if name == topic}
        listed = F.array(*(F.lit(ends.get(each)) for each in range(max(ends) + 1)))
        here = F.get(listed.cast("array<bigint>"), F.col("partition"))
        end = F.when(F.col("topic") == topic, here).otherwise(end)
    return end
