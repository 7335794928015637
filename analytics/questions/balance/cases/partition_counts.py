"""How many partitions topics have, and how that is known."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import polars as pl

from analytics.questions.balance.cases.case import COUNT_SOURCES
from analytics.replay.metadata.metadata_log import metadata_log
from analytics.replay.spans.intervals import TIME

# How many partitions topics had, from when to when.

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


METADATA_LOG, SIDE_FILE, PARTITION_METADATA, SEEN, _ = COUNT_SOURCES
COUNTS = pl.Schema(
    {"topic": pl.String, "topic_id": pl.String, "partitions": pl.Int32, "counted_by": pl.String}
)


def partition_counts(
    topics: pl.DataFrame, in_records: pl.DataFrame, highest: pl.DataFrame
) -> pl.DataFrame:
    """Return the partition count of every living topic that something is known of.

    Args:
        topics: The table `topics`.
        in_records: Counts that records of groups hold: `topic`, `partitions` (`counts_in_records`).
        highest: Of `highest_seen`: a lower bound.

    Returns:
        `COUNTS`: one row a topic; `topic_id` is null where it is not known.
    """
    living = topics.filter(pl.col("deleted_at").is_null() & pl.col("topic").is_not_null())
    listed = living.filter(pl.col("partitions").is_not_null()).select(
        "topic", "topic_id", "partitions", pl.col("source").alias("counted_by")
    )
    other = pl.concat(
        [
            in_records.select(
                "topic", "partitions", pl.lit(PARTITION_METADATA).alias("counted_by")
            ),
            highest.select("topic", "partitions", pl.lit(SEEN).alias("counted_by")),
        ]
    )
    if has_metadata_log(topics):
        # Where the log of the metadata is there, what it does not list does not exist.
        other = other.clear()
    ids = living.group_by("topic").agg(pl.col("topic_id").max())
    rows = pl.concat([listed, other.join(ids, on="topic", how="left").select(listed.columns)])
    ranks = {word: rank for rank, word in enumerate(COUNT_SOURCES)}
    rank = pl.col("counted_by").replace_strict(ranks, default=-1, return_dtype=pl.Int32)
    # Of equally good sources the one that knows of more partitions: topics only grow.
    return (
        rows.with_columns(rank.alias("rank"))
        .sort("topic", "rank", -pl.col("partitions"), "topic_id")
        .group_by("topic", maintain_order=True)
        .first()
        .select(COUNTS.names())
        .cast(COUNTS)
    )


def has_metadata_log(topics: pl.DataFrame) -> bool:
    """Return whether the table `topics` was made of the metadata log: then no topic lacks."""
    return METADATA_LOG in topics["source"]


def highest_seen(parts: Iterable[pl.DataFrame]) -> pl.DataFrame:
    """Return the least number of partitions of the topics that turn up: `topic`, `partitions`.

    Args:
        parts: `topic` (a name, or an id where that is all there is) and `partition`.
    """
    empty = pl.DataFrame(schema={"topic": pl.String, "partitions": pl.Int32})
    found = [
        each.filter(pl.col("topic").is_not_null())
        .group_by("topic")
        .agg((pl.col("partition").max() + 1).cast(pl.Int32).alias("partitions"))
        for each in parts
    ]
    return pl.concat([empty, *found]).group_by("topic").agg(pl.col("partitions").max())


def counts_in_records(records: Iterable[pl.DataFrame]) -> pl.DataFrame:
    """Return the counts in partition metadata records of groups (types 4 and 9, up to 4.0).

    Args:
        records: `topics` of their values: lists of structs with `topic_name`, `num_partitions`.

    Returns:
        `topic`, `partitions`: the highest count of each topic.
    """
    empty = pl.DataFrame(schema={"topic": pl.String, "partitions": pl.Int32})
    told = pl.col("topics").struct
    found = [
        each.explode("topics")
        .drop_nulls("topics")
        .select(
            told.field("topic_name").alias("topic"),
            told.field("num_partitions").alias("partitions"),
        )
        for each in records
    ]
    return pl.concat([empty, *found]).group_by("topic").agg(pl.col("partitions").max())
