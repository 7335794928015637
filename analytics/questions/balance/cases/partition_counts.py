"""How many partitions topics have, and how that is known."""

from __future__ import annotations

from collections.abc import Iterable

import polars as pl

from analytics.questions.balance.cases.case import COUNT_SOURCES

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
