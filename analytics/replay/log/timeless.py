"""Records without a time (message format 0): which of them are later than an instant.

A partition's records were appended in the order of their offsets. So one without a time that lies
behind a record of a later time is later itself. A commit says its own time in its value.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from pyspark.sql import functions as F

if TYPE_CHECKING:
    from datetime import datetime

    from pyspark.sql import DataFrame

_COMMITS, _GROUPS = "offset_commit", "group_metadata"
"""What releases wrote that knew message format 0."""


def timeless_ends(decoded: Mapping[str, DataFrame], last: datetime) -> dict[tuple[str, int], int]:
    """Return from which offset on records without a time are later than an instant.

    Args:
        decoded: Decoded tables.
        last: The instant.

    Returns:
        By topic and partition, of partitions with such records of which any is surely later.
    """
    if any(name not in decoded for name in (_COMMITS, _GROUPS)) or not _has_timeless(decoded):
        return {}
    committed = F.col("value.commit_timestamp")
    of_commit = F.when(committed > 0, F.timestamp_millis(committed))
    told = decoded[_COMMITS].select(
        "topic", "partition", "offset", "timestamp", F.coalesce("timestamp", of_commit).alias("at")
    )
    groups = decoded[_GROUPS].select(
        "topic", "partition", "offset", "timestamp", F.col("timestamp").alias("at")
    )
    rows = (
        told.unionByName(groups)
        .groupBy("topic", "partition")
        .agg(
            F.max(F.col("timestamp").isNull()).alias("has_timeless"),
            F.min(F.when(F.col("at") > F.lit(last), F.col("offset"))).alias("end"),
        )
        .where("has_timeless and end is not null")
        .collect()
    )
    return {(row["topic"], row["partition"]): row["end"] for row in rows}


def _has_timeless(decoded: Mapping[str, DataFrame]) -> bool:
    """Return whether any record has no time.

    Hardly any dump has one, and Parquet's statistics say so without a row being read.
    """
    commits, groups = (
        decoded[name].where(F.col("timestamp").isNull()).select("offset").limit(1)
        for name in (_COMMITS, _GROUPS)
    )
    return not commits.unionByName(groups).isEmpty()
