"""Lists of partitions and tasks in assignment records, as one row each."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark.sql import functions as F

from analytics.replay.group_records import STREAMS

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame


def topic_partitions(members: DataFrame, family: str, kind: str, epoch: Column) -> DataFrame:
    """Return one row for each partition in a column of lists of topics, as of `assignments`.

    Args:
        members: Has `group_id`, `member_id` and the column that `kind` names.
        family: The type of group.
        kind: current, target or pending_revocation.
        epoch: The epoch the assignment belongs to.
    """
    return members.select(
        "group_id", "member_id", epoch.alias("epoch"), F.explode(kind).alias("given")
    ).select(
        "group_id",
        F.lit(family).alias("group_type"),
        "epoch",
        "member_id",
        F.lit(kind).alias("kind"),
        F.lit(None).cast("string").alias("role"),
        F.lit(None).cast("string").alias("subtopology_id"),
        F.lit(None).cast("string").alias("topic"),
        F.col("given.topic_id").alias("topic_id"),
        F.explode("given.partitions").alias("partition"),
    )


def tasks(members: DataFrame, kind: str, role: str, column: str, epoch: Column) -> DataFrame:
    """Return one row for each task of a streams member in a column of lists, as of `assignments`.

    Args:
        members: Has `group_id`, `member_id` and the column.
        kind: current, target or pending_revocation.
        role: active, standby or warmup.
        column: Holds lists of subtopologies with their partitions.
        epoch: The epoch the assignment belongs to.
    """
    return members.select(
        "group_id", "member_id", epoch.alias("epoch"), F.explode(column).alias("given")
    ).select(
        "group_id",
        F.lit(STREAMS).alias("group_type"),
        "epoch",
        "member_id",
        F.lit(kind).alias("kind"),
        F.lit(role).alias("role"),
        F.col("given.subtopology_id").alias("subtopology_id"),
        F.lit(None).cast("string").alias("topic"),
        F.lit(None).cast("string").alias("topic_id"),
        F.explode("given.partitions").alias("partition"),
    )
