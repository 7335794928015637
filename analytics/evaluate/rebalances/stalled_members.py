"""What stands still in groups at an instant: behind their epoch, or owning without reading."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import TYPE_CHECKING

from pyspark.sql import functions as F

from schemas.evaluation_rules import RebalanceRules

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

COLUMNS = ("group_id", "kind", "member_id", "since", "detail")
UNASSIGNED, RECONCILING, IDLE_OWNER = "unassigned_epoch", "reconciling", "idle_owner"


def unassigned_epochs(groups: DataFrame, epochs: DataFrame) -> DataFrame:
    """Return groups with members whose group epoch is ahead of their assignment epoch.

    Args:
        groups: The table `groups`.
        epochs: The table `group_epochs`.

    Returns:
        `COLUMNS`; `since` is when that epoch began.
    """
    ahead = groups.where("member_count > 0 and epoch > assignment_epoch")
    return (
        _with_begin(ahead, epochs, "epoch")
        .withColumn("kind", F.lit(UNASSIGNED))
        .withColumn("member_id", F.lit(None).cast("string"))
        .withColumn(
            "detail",
            F.format_string(
                "group epoch %d is ahead of assignment epoch %d", "epoch", "assignment_epoch"
            ),
        )
        .select(*COLUMNS)
    )


def reconciling_members(
    groups: DataFrame,
    members: DataFrame,
    epochs: DataFrame,
    now: datetime,
    rules: RebalanceRules,
) -> DataFrame:
    """Return members that have been behind the assignment epoch for long.

    Args:
        groups: The table `groups`.
        members: The table `members`.
        epochs: The table `group_epochs`.
        now: The instant.
        rules: How long is long.

    Returns:
        `COLUMNS`; `since` is when the epoch they are behind began.
    """
    wanted = groups.where("assignment_epoch is not null").select(
        "group_id", F.col("assignment_epoch").alias("epoch")
    )
    behind = members.join(wanted, "group_id").where(
        "member_epoch <> epoch or coalesce(state, 'STABLE') <> 'STABLE'"
    )
    limit = F.lit(now - timedelta(minutes=rules.reconciling_minutes))
    return (
        _with_begin(behind, epochs, "epoch")
        .where(F.col("since") < limit)
        .withColumn("kind", F.lit(RECONCILING))
        .withColumn(
            "detail",
            F.format_string(
                "member epoch %d, %s; wanted is %d",
                "member_epoch",
                F.coalesce("state", F.lit("STABLE")),
                "epoch",
            ),
        )
        .select(*COLUMNS)
    )


def idle_owners(
    held: DataFrame, offset_history: DataFrame, now: datetime, rules: RebalanceRules
) -> DataFrame:
    """Return static members that own partitions and commit nothing new, while others do.

    Args:
        held: The table `assignment_history`.
        offset_history: The table `offset_history`.
        now: The instant.
        rules: How long is long.

    Returns:
        `COLUMNS`; `since` is the last progress of what the member owns, or when it got it.
    """
    owned = held.where("kind = 'current' and to_offset is null and topic is not null").select(
        "group_id", "member_id", "group_instance_id", "topic", "partition", "from_timestamp"
    )
    progress = (
        offset_history.where("advance > 0")
        .groupBy("group_id", "topic", "partition")
        .agg(F.max("effective_timestamp").alias("last"))
    )
    members = (
        owned.join(progress, ["group_id", "topic", "partition"], "left")
        .groupBy("group_id", "member_id", "group_instance_id")
        .agg(
            F.max(F.greatest("last", "from_timestamp")).alias("since"),
            F.count(F.lit(1)).alias("partitions"),
        )
    )
    groups = progress.groupBy("group_id").agg(F.max("last").alias("group_last"))
    limit = F.lit(now - timedelta(minutes=rules.idle_owner_minutes))
    return (
        members.where("group_instance_id is not null")
        .join(groups, "group_id")
        .where((F.col("since") < limit) & (F.col("group_last") >= limit))
        .withColumn("kind", F.lit(IDLE_OWNER))
        .withColumn(
            "detail",
            F.format_string(
                "static member %s owns %d partitions and commits nothing new",
                "group_instance_id",
                "partitions",
            ),
        )
        .select(*COLUMNS)
    )


def _with_begin(rows: DataFrame, epochs: DataFrame, epoch: str) -> DataFrame:
    """Add `since`: when the latest epoch of that number began."""
    began = epochs.groupBy("group_id", F.col("epoch").alias(epoch)).agg(
        F.max_by("from_timestamp", "from_offset").alias("since")
    )
    return rows.join(began, ["group_id", epoch], "left")
