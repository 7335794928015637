"""Decoded records as frames of polars, cut at the instant asked about.

A frame has `PLACE` beside its columns: where and when each record was written.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

import polars as pl

from analytics.dump.files.model import CLUSTER_METADATA
from analytics.replay.log.instants import AsOf
from analytics.replay.metadata.log_beginning import snapshot_end

PLACE: Final = {
    "_topic": "topic",
    "_partition": "partition",
    "_offset": "offset",
    "_time": "timestamp",
}
"""The columns, and of which field of a decoded record each is."""

Ends = Mapping[tuple[str, int], int]
"""An offset by topic and partition."""


def cut(
    records: pl.DataFrame, as_of: AsOf, *, log_starts: Ends, timeless_ends: Ends
) -> pl.DataFrame:
    """Keep the records that count, without `PLACE`.

    Args:
        records: Has `PLACE`; of the metadata log also `segment`, as a snapshot of it counts as a
            whole where all that it stands for counts.
        as_of: The instant.
        log_starts: Where logs start whose deleted records are there nevertheless
            (``DeleteRecords``).
        timeless_ends: From where on records without a time are later than the instant.
    """
    offset, time = pl.col("_offset"), pl.col("_time")
    place = offset
    if "segment" in records.columns:
        of_snapshot = pl.when(pl.col("_topic") == CLUSTER_METADATA).then(snapshot_end() - 1)
        place = pl.coalesce(of_snapshot, offset)
    kept = ~_is_from(log_starts, offset, is_below=True)
    kept &= ~_is_from(as_of.offsets, place)
    if as_of.timestamp_ms is not None:
        is_in_time = time.dt.epoch("us") <= as_of.timestamp_ms * 1000
        kept &= pl.when(time.is_null()).then(~_is_from(timeless_ends, offset)).otherwise(is_in_time)
    return records.filter(kept).drop(list(PLACE))


def timeless_ends(
    commits: pl.DataFrame, groups: pl.DataFrame, as_of: AsOf
) -> dict[tuple[str, int], int]:
    """Return from which offset on records without a time (message format 0) are later.

    A partition's records were appended in the order of their offsets. So one without a time that
    lies behind a record of a later time is later itself. A commit says its own time in its value.

    Args:
        commits: `PLACE` and `commit_ms` of all commits of whole partitions.
        groups: `PLACE` of their records of classic groups: what else releases wrote that knew
            message format 0.
        as_of: The instant.
    """
    if as_of.timestamp_ms is None:
        return {}
    has_time = pl.col("_time").is_not_null()
    if all(each.select(has_time.all()).item() for each in (commits, groups)):
        return {}
    told = pl.concat(
        [commits.select(*PLACE, "commit_ms"), groups.select(list(PLACE))], how="diagonal"
    )
    said = pl.when(pl.col("commit_ms") > 0).then("commit_ms")
    at = pl.coalesce(pl.col("_time").dt.epoch("ms"), said)
    ends = (
        told.group_by("_topic", "_partition")
        .agg(
            (~has_time).any().alias("has_timeless"),
            pl.col("_offset").filter(at > as_of.timestamp_ms).min().alias("end"),
        )
        .filter(pl.col("has_timeless") & pl.col("end").is_not_null())
    )
    rows = ends.select("_topic", "_partition", "end").iter_rows()
    return {(topic, partition): end for topic, partition, end in rows}


def _is_from(ends: Ends, place: pl.Expr, *, is_below: bool = False) -> pl.Expr:
    """Return whether a record lies at or behind an end of its partition, or below it."""
    found = pl.lit(value=False)
    for (topic, partition), end in ends.items():
        here = (pl.col("_topic") == topic) & (pl.col("_partition") == partition)
        found |= here & (place < end if is_below else place >= end)
    return found
