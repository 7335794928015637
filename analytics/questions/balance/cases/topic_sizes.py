"""How many partitions topics had, from when to when."""

from __future__ import annotations

from collections.abc import Mapping

import polars as pl

from analytics.questions.balance.cases.partition_counts import METADATA_LOG
from analytics.replay.metadata.metadata_log import metadata_log
from analytics.replay.spans.intervals import TIME

TOLD_BY = ("topic_record", "remove_topic_record", "partition_record")
"""Tables of the metadata log that are looked at with their values, beside `AROUND`."""

SIZES = pl.Schema(
    {
        "topic": pl.String(),
        "topic_id": pl.String(),
        "partitions": pl.Int32(),
        "since": TIME,
        "until": TIME,
        "counted_by": pl.String(),
    }
)


def topic_sizes(decoded: Mapping[str, pl.DataFrame], counts: pl.DataFrame) -> pl.DataFrame:
    """Return the partition counts of topics over time, as the metadata log tells them.

    Args:
        decoded: `TOLD_BY` and `AROUND` of `metadata_log`, cut at the instant.
        counts: `partition_counts`: of one time, where no log of the metadata tells more.

    Returns:
        `SIZES`; `since` is null before anything tells, `until` where no end is known: one row for
        each time that partitions were added.
    """
    timeless = counts.filter(pl.col("counted_by") != METADATA_LOG)
    return pl.concat(
        [_logged_sizes(decoded), timeless.match_to_schema(SIZES, missing_columns="insert")]
    )


def _logged_sizes(decoded: Mapping[str, pl.DataFrame]) -> pl.DataFrame:
    value = pl.col("value").struct
    log = metadata_log(decoded)
    topics, removals, partitions = (log.visible(name) for name in TOLD_BY)
    names = topics.select(value.field("topic_id"), value.field("name").alias("topic"))
    ends = removals.select(value.field("topic_id"), pl.col("since").alias("removed"))
    added = (
        partitions.select(value.field("topic_id"), value.field("partition_id"), "at", "since")
        .sort("at")
        .group_by("topic_id", "partition_id")
        .first()
    )
    # Partitions that were created together have times that differ by the batch, if at all.
    return (
        added.group_by("topic_id", "since")
        .agg(pl.len().alias("more"))
        .sort("topic_id", "since", nulls_last=False)
        .with_columns(
            pl.col("more").cum_sum().over("topic_id").cast(pl.Int32).alias("partitions"),
            pl.col("since").shift(-1).over("topic_id").alias("next"),
        )
        .join(names, on="topic_id")
        .join(ends, on="topic_id", how="left")
        .select(
            *("topic", "topic_id", "partitions", "since"),
            pl.coalesce("next", "removed").alias("until"),
            pl.lit(METADATA_LOG).alias("counted_by"),
        )
    )
