"""How many partitions topics have, and how that is known."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from pyspark.sql import functions as F

from analytics.evaluate.balance.case import COUNT_SOURCES
from analytics.replay.union import union_all

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

METADATA_LOG, SIDE_FILE, PARTITION_METADATA, SEEN, _ = COUNT_SOURCES


def partition_counts(
    topics: DataFrame, told: DataFrame, seen: Sequence[DataFrame] = ()
) -> DataFrame:
    """Return the partition count of every living topic that something is known of.

    Args:
        topics: The table `topics`.
        told: Counts that records of groups hold: `topic`, `partitions` (`counts_in_records`).
        seen: Where partitions of topics turn up: `topic` (a name, or an id where that is all there
            is) and `partition`. Their highest is a lower bound.

    Returns:
        `topic`, `topic_id` (null where not known), `partitions`, `counted_by`: one row a topic.
    """
    living = topics.where("deleted_at is null and topic is not null")
    listed = living.where("partitions is not null").select(
        "topic", "topic_id", "partitions", F.col("source").alias("counted_by")
    )
    ids = living.groupBy("topic").agg(F.max("topic_id").alias("topic_id"))
    other = told.select("topic", "partitions", F.lit(PARTITION_METADATA).alias("counted_by"))
    for frame in seen:
        bound = (
            frame.where("topic is not null")
            .groupBy("topic")
            .agg((F.max("partition") + 1).alias("partitions"))
        )
        other = other.unionByName(bound.withColumn("counted_by", F.lit(SEEN)))
    # Where the log of the metadata is there, what it does not list does not exist.
    whole = topics.where(F.col("source") == METADATA_LOG).limit(1).select("source")
    other = other.join(F.broadcast(whole), F.lit(col=True), "left_anti")
    rows = listed.unionByName(other.join(ids, "topic", "left"))
    rank = F.array_position(F.array(*map(F.lit, COUNT_SOURCES)), F.col("counted_by"))
    # Of equally good sources the one that knows of more partitions: topics only grow.
    said = F.struct("topic_id", "partitions", "counted_by")
    best = F.min_by(said, F.struct(rank, -F.col("partitions")))
    return rows.groupBy("topic").agg(best.alias("said")).select("topic", "said.*")


def counts_in_records(decoded: Mapping[str, DataFrame]) -> DataFrame:
    """Return the counts in partition metadata records of groups (types 4 and 9, up to 4.0).

    Args:
        decoded: Tables cut at the instant.

    Returns:
        `topic`, `partitions`: the highest count of each topic.
    """
    names = ("consumer_group_partition_metadata", "share_group_partition_metadata")
    records = (decoded[name].select(F.explode("value.topics").alias("told")) for name in names)
    together = union_all(
        each.select(
            F.col("told.topic_name").alias("topic"),
            F.col("told.num_partitions").alias("partitions"),
        )
        for each in records
    )
    return together.groupBy("topic").agg(F.max("partitions").alias("partitions"))
