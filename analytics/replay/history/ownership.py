"""What was known of a group and of who owned a partition, from record to record.

Commits are looked at beside these: both are light rows at offsets of the coordinator's log.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark.sql import functions as F

from analytics.replay.groups.coordinator_log import PENDING, PRESENCE
from analytics.replay.groups.group_records import CURRENT, GROUP_KEY, STREAMS
from analytics.replay.log.as_of import Decoded

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

_ACTIVE = "active"


def group_moments(steps: DataFrame, runs: DataFrame) -> DataFrame:
    """Return when groups changed their type, epoch or number of members.

    Args:
        steps: Of `steps_in_lives`.
        runs: Of `runs`.

    Returns:
        `GROUP_KEY`, `position` (offset), `group` (struct `family`, `epoch`, both null once the
        group is gone, the epoch while no record tells it, and `offset`; null where neither
        changed) and `joins` (int: members that
        came, less those that went).
    """
    family, epoch = F.col("family"), F.col("epoch")
    lives = ~F.col("ends")
    group = F.struct(
        F.when(lives, family).alias("family"),
        F.when(lives & F.col("is_epoch"), epoch).alias("epoch"),
        "offset",
    )
    told = steps.where("starts or is_epoch or ends").select(
        *GROUP_KEY,
        F.col("offset").alias("position"),
        group.alias("group"),
        F.lit(0).alias("joins"),
    )
    there = runs.where(F.col("kind") == PRESENCE)
    gone = there.where("until is not null")
    for place, frame, joins in (("at", there, 1), ("until", gone, -1)):
        told = told.unionByName(
            frame.select(
                *GROUP_KEY, F.col(f"{place}.offset").alias("position"), F.lit(joins).alias("joins")
            ),
            allowMissingColumns=True,
        )
    return told


def owners(held: DataFrame, decoded: Decoded) -> DataFrame:
    """Return when partitions of topics got an owner, its epoch changed, or they lost it.

    What is being given back is owned until it is. The partitions of a streams task are those of the
    source topics of its subtopology.

    Args:
        held: Of `holdings`, with names of topics; what has none cannot be told.
        decoded: The decoded tables, for topologies.

    Returns:
        `GROUP_KEY`, `topic`, `partition`, `position` (offset), `owner` (struct `member_id`,
        `epoch`, both null where it lost its owner).
    """
    owned = F.col("kind").isin(CURRENT, PENDING)
    active = F.coalesce(F.col("role") == _ACTIVE, F.lit(col=True))
    had = held.where(owned & active).select(
        *GROUP_KEY,
        "family",
        "subtopology_id",
        "topic",
        "partition",
        F.col("at.offset").alias("position"),
        F.struct("member_id", "epoch").alias("owner"),
        F.col("until.offset").alias("lost_at"),
    )
    named = had.where(F.col("family") != STREAMS)
    sources = _source_topics(decoded)
    tasks = (
        had.where(F.col("family") == STREAMS)
        .drop("topic")
        .join(F.broadcast(sources), [*GROUP_KEY, "subtopology_id"])
    )
    all_ = named.unionByName(tasks).where("topic is not null").drop("family", "subtopology_id")
    nobody = F.struct(
        F.lit(None).cast("string").alias("member_id"), F.lit(None).cast("int").alias("epoch")
    )
    lost = all_.where("lost_at is not null").select(
        *GROUP_KEY, "topic", "partition", F.col("lost_at").alias("position"), nobody.alias("owner")
    )
    return all_.drop("lost_at").unionByName(lost)


def _source_topics(decoded: Decoded) -> DataFrame:
    """Return `GROUP_KEY`, `subtopology_id` and `topic`: what subtopologies read from."""
    part = F.explode("value.subtopologies").alias("part")
    topologies = decoded["streams_group_topology"].select(
        F.col("partition").alias("coordinator_partition"), F.col("key.group_id"), part
    )
    repartitioned = F.transform("part.repartition_source_topics", lambda each: each["name"])
    return topologies.select(
        *GROUP_KEY,
        "part.subtopology_id",
        F.explode(F.concat("part.source_topics", repartitioned)).alias("topic"),
    ).distinct()
