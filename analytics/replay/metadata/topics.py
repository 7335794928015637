"""Topics by name and id, one row per life of a name, from every source that knows some."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from pyspark.sql import functions as F

from analytics.replay.contract import as_table
from analytics.replay.log.as_of import Decoded
from analytics.replay.log.stored_values import uuid
from analytics.replay.metadata.metadata_log import MetadataLog
from analytics.replay.metadata.topic_sources import METADATA_LOG, SOURCES
from analytics.replay.union import union_all

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

UNKNOWN_NAME = "<UNKNOWN>"
"""What a broker writes into share state metadata for an id that it cannot name."""


def topics(log: MetadataLog, others: Sequence[DataFrame] = ()) -> DataFrame:
    """Return the table `topics`.

    Args:
        log: MetadataLog tables, cut at an instant.
        others: Further sources: `topic`, `topic_id` (null where not known), `partitions` (null
            where not known) and `source`.
    """
    told = union_all(
        (_from_metadata_log(log), *others, _from_records(log.decoded)), missing_as_null=True
    )
    removed = log.told("remove_topic_record").select(
        F.col("value.topic_id").alias("topic_id"), F.col("since").alias("deleted_at")
    )
    rank = F.array_position(F.array(*map(F.lit, SOURCES)), F.col("source"))
    ids = told.where("topic_id is not null")
    # A name without an id adds nothing where some source gives it one.
    bare = told.where("topic_id is null").join(ids.select("topic"), "topic", "left_anti")
    said = F.struct("created_at", "source")
    # A lesser source is asked only for a number of partitions that no better one has.
    counts = F.when(F.col("partitions").isNotNull(), rank)
    best = (
        ids.unionByName(bare)
        .groupBy("topic", "topic_id")
        .agg(
            F.min_by(said, rank).alias("said"),
            F.min_by("partitions", counts).alias("partitions"),
        )
    )
    rows = best.join(F.broadcast(removed), "topic_id", "left")
    return as_table(
        rows.select("topic", "topic_id", "partitions", "said.*", "deleted_at"), "topics"
    )


def _from_metadata_log(log: MetadataLog) -> DataFrame:
    created = (
        log.visible("topic_record")
        .unionByName(log.told("topic_record"))
        .groupBy(
            F.col("value.name").alias("topic"),
            F.col("value.topic_id").alias("topic_id"),
        )
        .agg(F.min("since").alias("created_at"))
    )
    counted = (
        log.visible("partition_record")
        .unionByName(log.told("partition_record"))
        .groupBy(F.col("value.topic_id").alias("topic_id"))
        .agg(F.count_distinct(F.col("value.partition_id")).cast("int").alias("partitions"))
    )
    return created.join(counted, "topic_id", "left").withColumn("source", F.lit(METADATA_LOG))


def _from_records(decoded: Decoded) -> DataFrame:
    """Return names and ids that records of groups carry side by side."""
    commits = decoded["offset_commit"].select(
        F.col("key.topic").alias("topic"), F.col("value.topic_id").alias("topic_id")
    )
    state = decoded["share_group_state_partition_metadata"]
    lists = (
        (decoded["consumer_group_partition_metadata"], "topics"),
        (decoded["share_group_partition_metadata"], "topics"),
        (state, "initializing_topics"),
        (state, "initialized_topics"),
        (state, "deleting_topics"),
    )
    named = [
        frame.select(F.explode(f"value.{column}").alias("named")).select(
            F.col("named.topic_name").alias("topic"), F.col("named.topic_id").alias("topic_id")
        )
        for frame, column in lists
    ]
    pairs = union_all((commits, *named))
    return (
        pairs.where((F.col("topic") != UNKNOWN_NAME) & uuid(F.col("topic_id")).isNotNull())
        .distinct()
        .withColumn("source", F.lit("record"))
    )
