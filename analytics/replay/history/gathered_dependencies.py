"""What groups depend on gathered from other tables and the metadata log, and what befell it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import polars as pl
from pyspark.sql import functions as F

from analytics.replay.contract_frame import contract_schema
from analytics.replay.groups.group_records import GROUP_KEY
from analytics.replay.history.dependency_events import (
    config_events,
    coordinator_events,
    topic_changes,
    topic_events,
)
from analytics.replay.log.group_buckets import Frames, from_spark, group_rows
from analytics.replay.union import union_all

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from analytics.replay.metadata.metadata_log import MetadataLog

_PLACE = ("since", "metadata_offset", "position")


def dependency_events(
    metadata: MetadataLog,
    topics: pl.DataFrame,
    coordinators: pl.DataFrame,
    offsets: DataFrame,
    assigned: DataFrame,
) -> dict[str, DataFrame]:
    """Return, as `events`, what befell coordinators, topics and settings of groups.

    Args:
        metadata: The metadata log at an instant.
        topics: `topic_id` and `topic`, each pair once.
        coordinators: Of `coordinators`.
        offsets: The table `offset_history`.
        assigned: The table `assignment_history`.
    """
    seen = _seen(offsets, "record_offset").unionByName(_seen(assigned, "from_offset"))
    seen = seen.localCheckpoint()
    # A group is its name here, whatever partition its records are in.
    uses = seen.select(F.lit(0).alias(GROUP_KEY[0]), "group_id", "topic").distinct()
    changes = topic_changes(from_spark(_told_of_topics(metadata)), topics)
    settings = from_spark(_told_of_settings(metadata))

    def make(rows: Frames) -> Frames:
        pairs = rows["uses"].select("group_id", "topic")
        events = (
            coordinator_events(rows["seen"], coordinators),
            topic_events(pairs, changes),
            config_events(pairs, settings),
        )
        return {"events": pl.concat(events)}

    rows = group_rows({"seen": seen, "uses": uses})
    return rows.made(make, {"events": contract_schema("group_events")})


def _seen(rows: DataFrame, offset: str) -> DataFrame:
    return rows.groupBy(*GROUP_KEY, "topic").agg(F.min(offset).alias("seen_at"))


def _told_of_topics(metadata: MetadataLog) -> DataFrame:
    records = (
        (metadata.told("topic_record"), "topic_created"),
        (metadata.told("remove_topic_record"), "topic_deleted"),
        (metadata.visible("partition_record"), None),
    )
    return union_all(
        frame.select(
            F.col("value.topic_id").alias("topic_id"),
            F.lit(event).cast("string").alias("event"),
            *_PLACE,
        )
        for frame, event in records
    )


def _told_of_settings(metadata: MetadataLog) -> DataFrame:
    value = F.col("value")
    return metadata.told("config_record").select(
        value["resource_type"].alias("resource_type"),
        value["resource_name"].alias("resource"),
        value["name"].alias("name"),
        value["value"].alias("value"),
        *_PLACE,
    )
