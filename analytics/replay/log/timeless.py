"""Records without a time (message format 0): which of them are later than an instant.

A partition's records were appended in the order of their offsets. So one without a time that lies
behind a record of a later time is later itself. A commit says its own time in its value.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

import polars as pl

from analytics.replay.log.instants import AsOf

COMMITS, GROUPS = "offset_commit", "group_metadata"
"""What releases wrote that knew message format 0."""
_PLACE: Final = ("topic", "partition", "offset", "timestamp")


def timeless_ends(decoded: Mapping[str, pl.DataFrame], as_of: AsOf) -> dict[tuple[str, int], int]:
    """Return from which offset on records without a time are later than an instant.

    Args:
        decoded: Decoded tables of whole partitions; of each at least where and when its records
            were written, of commits their `value`, too.
        as_of: The instant.

    Returns:
        By topic and partition, of partitions with such records of which any is surely later.
    """
    if as_of.timestamp_ms is None or not {COMMITS, GROUPS} <= decoded.keys():
        return {}
    commits, groups = decoded[COMMITS], decoded[GROUPS]
    # Hardly any dump has one.
    if not any(each["timestamp"].null_count() for each in (commits, groups)):
        return {}
    said = pl.col("value").struct.field("commit_timestamp")
    told = pl.concat(
        [
            commits.select(*_PLACE, pl.when(said > 0).then(said).alias("said")),
            groups.select(*_PLACE, pl.lit(None, pl.Int64).alias("said")),
        ]
    )
    at = pl.coalesce(pl.col("timestamp").dt.epoch("ms"), "said")
    ends = (
        told.group_by("topic", "partition")
        .agg(
            pl.col("timestamp").is_null().any().alias("has_timeless"),
            pl.col("offset").filter(at > as_of.timestamp_ms).min().alias("end"),
        )
        .filter(pl.col("has_timeless") & pl.col("end").is_not_null())
    )
    rows = ends.select("topic", "partition", "end").iter_rows()
    return {(topic, partition): end for topic, partition, end in rows}
