"""Events that befell what a group depends on: its coordinator, its topics, its settings."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark.sql import Window
from pyspark.sql import functions as F

from analytics.replay.history.event_rows import METADATA, OFFSETS, event_rows, words
from analytics.replay.log.as_of import Decoded
from analytics.replay.log.record_position import IN_DUMP
from analytics.replay.log.stored_values import word
from analytics.replay.metadata.configs import RESOURCES, harmless_name
from analytics.replay.union import union_all

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from analytics.replay.metadata.metadata_log import MetadataLog


def events_around(
    decoded: Decoded,
    metadata: MetadataLog,
    topics: DataFrame,
    coordinators: DataFrame,
    offsets: DataFrame,
    assigned: DataFrame,
    steps: DataFrame,
) -> DataFrame:
    """Return coordinator_changed, topic_created, topic_deleted, topic_grown and config_changed.

    Args:
        decoded: Decoded tables, cut at an instant.
        metadata: The metadata log at that instant.
        topics: The table `topics`.
        coordinators: The table `coordinator_epochs`.
        offsets: The table `offset_history`.
        assigned: The table `assignment_history`.
        steps: Every record about a group, with its place.
    """
    seen = (
        offsets.groupBy("coordinator_partition", "group_id", "topic")
        .agg(F.min("record_offset").alias("seen_at"))
        .unionByName(
            assigned.groupBy("coordinator_partition", "group_id", "topic").agg(
                F.min("from_offset").alias("seen_at")
            )
        )
        .localCheckpoint()
    )
    uses = seen.where("topic is not null").select("group_id", "topic").distinct()
    events = (
        _coordinators(seen, coordinators, decoded, steps),
        _topics(metadata, topics, uses),
        _configs(metadata, seen, uses),
    )
    return union_all(events)


def _coordinators(
    seen: DataFrame, coordinators: DataFrame, decoded: Decoded, steps: DataFrame
) -> DataFrame:
    groups = seen.groupBy("coordinator_partition", "group_id").agg(
        F.min("seen_at").alias("seen_at")
    )
    epochs = coordinators.where(F.col("topic") == OFFSETS).select(
        F.col("partition").alias("coordinator_partition"),
        F.col("from_offset").alias("record_offset"),
        F.col("from_timestamp").alias("at"),
        "leader_epoch",
        "leader",
        "unclean",
    )
    order = Window.partitionBy("coordinator_partition").orderBy("leader_epoch")
    led = epochs.withColumn("led_before", F.lag("leader").over(order))
    changed = _with_positions(led, decoded, steps)
    rows = groups.join(changed, "coordinator_partition").where("record_offset > seen_at")
    detail = F.concat_ws(
        "; ",
        F.concat(F.lit("broker "), F.col("leader").cast("string")),
        F.concat(F.lit("before it broker "), F.col("led_before").cast("string")),
        F.when(F.col("unclean"), "unclean election"),
    )
    return event_rows(
        rows,
        OFFSETS,
        at="at",
        event=F.lit("coordinator_changed"),
        subject=words("leader epoch ", F.col("leader_epoch")),
        detail=detail,
    )


def _with_positions(epochs: DataFrame, decoded: Decoded, steps: DataFrame) -> DataFrame:
    """Add where the first record of each leader epoch is, of all epochs but the first."""
    first = Window.partitionBy("coordinator_partition").orderBy("leader_epoch")
    later = epochs.withColumn("nth", F.row_number().over(first)).where("nth > 1").drop("nth")
    later = later.localCheckpoint()
    place = ("coordinator_partition", "record_offset")
    others = (
        decoded[name]
        .where(F.col("topic") == OFFSETS)
        .select(
            F.col("partition").alias("coordinator_partition"),
            F.col("offset").alias("record_offset"),
            *IN_DUMP,
        )
        for name in ("offset_commit", "control_markers")
    )
    about_groups = steps.select(
        "coordinator_partition",
        F.col("offset").alias("record_offset"),
        *(F.col(f"position.{name}").alias(name) for name in IN_DUMP),
    )
    records = union_all((*others, about_groups))
    # As many as there were elections: few beside the records.
    places = records.join(F.broadcast(later.select(*place).distinct()), list(place))
    return later.join(places, list(place), "left")


def _topics(metadata: MetadataLog, topics: DataFrame, uses: DataFrame) -> DataFrame:
    value = F.col("value")
    created = metadata.told("topic_record").select(
        value["topic_id"].alias("topic_id"),
        *("since", "metadata_offset", "position"),
        F.lit("topic_created").alias("event"),
        F.lit(None).cast("bigint").alias("partitions"),
    )
    removed = metadata.told("remove_topic_record").select(
        value["topic_id"].alias("topic_id"),
        *("since", "metadata_offset", "position"),
        F.lit("topic_deleted").alias("event"),
        F.lit(None).cast("bigint").alias("partitions"),
    )
    order = Window.partitionBy("topic_id").orderBy("metadata_offset")
    grown = (
        metadata.visible("partition_record")
        .groupBy(value["topic_id"].alias("topic_id"), "since")
        .agg(
            F.min("metadata_offset").alias("metadata_offset"),
            F.min_by("position", "metadata_offset").alias("position"),
            F.count(F.lit(1)).alias("partitions"),
        )
        .withColumn("partitions", F.sum("partitions").over(order))
        .withColumn("nth", F.row_number().over(order))
        .where("nth > 1")
        .select(
            "topic_id",
            "since",
            "metadata_offset",
            "position",
            F.lit("topic_grown").alias("event"),
            "partitions",
        )
    )
    names = topics.where("topic_id is not null").select("topic_id", "topic").distinct()
    told = created.unionByName(removed).unionByName(grown).join(F.broadcast(names), "topic_id")
    rows = uses.join(F.broadcast(told), "topic").where("metadata_offset is not null")
    detail = F.concat_ws(
        "; ",
        F.concat(F.lit("id "), F.col("topic_id")),
        F.concat(F.col("partitions").cast("string"), F.lit(" partitions")),
    )
    return event_rows(
        _of_metadata(rows),
        METADATA,
        at="since",
        event=F.col("event"),
        subject=F.col("topic"),
        detail=detail,
    )


def _configs(metadata: MetadataLog, seen: DataFrame, uses: DataFrame) -> DataFrame:
    value = F.col("value")
    said = (
        metadata.told("config_record")
        .select(
            word(value["resource_type"], RESOURCES, "other").alias("resource_type"),
            value["resource_name"].alias("resource"),
            value["name"].alias("name"),
            value["value"].alias("said"),
            *("since", "metadata_offset", "position"),
        )
        .where(F.col("resource_type").isin("topic", "group"))
    )
    concerned = (
        uses.select(
            "group_id", F.lit("topic").alias("resource_type"), F.col("topic").alias("resource")
        )
        .unionByName(
            seen.select(
                "group_id",
                F.lit("group").alias("resource_type"),
                F.col("group_id").alias("resource"),
            )
        )
        .distinct()
    )
    rows = concerned.join(F.broadcast(said), ["resource_type", "resource"])
    shown = (
        F.when(F.col("said").isNull(), "unset")
        .when(harmless_name(), F.concat(F.lit("set to "), F.col("said")))
        .otherwise("changed, its value withheld")
    )
    return event_rows(
        _of_metadata(rows),
        METADATA,
        at="since",
        event=F.lit("config_changed"),
        subject=words(F.col("resource_type"), " ", F.col("resource")),
        detail=words(F.col("name"), " ", shown),
    )


def _of_metadata(rows: DataFrame) -> DataFrame:
    return (
        rows.withColumn("coordinator_partition", F.lit(0))
        .withColumn("record_offset", F.col("metadata_offset"))
        .select("*", "position.*")
    )
