"""Group epoch and assignment epoch of consumer, share and streams groups (KIP-848)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark.sql import functions as F

from analytics.replay.group_log import GroupLog
from analytics.replay.group_records import ASSIGNMENT_EPOCH, GROUP
from analytics.replay.latest import later
from analytics.replay.lives import GROUP_KEY
from analytics.replay.member_records import with_record

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

REMOVED_ASSIGNMENT_EPOCH = -1


def group_epochs(log: GroupLog, family: str, *also: Column) -> DataFrame:
    """Return the living groups of a type with their epochs.

    Args:
        log: The groups' records.
        family: Their type.
        also: Further columns, in terms of the group's decoded record.

    Returns:
        `coordinator_partition`, `group_id`, `since`, `record_offset` and `leader_epoch` (null where
        the group has no record of its own), `epoch`, `assignment_epoch`, and the further columns.
    """
    own = log.about_groups(family, GROUP).select(
        *GROUP_KEY, F.col("last_value").alias("own_record")
    )
    assigned = log.about_groups(family, ASSIGNMENT_EPOCH).select(
        *GROUP_KEY,
        F.col("last_value").alias("assignment_record"),
        later(F.col("last_tombstone"), F.col("last_value")).alias("assignment_removed"),
    )
    groups = log.groups_of(family)
    groups = groups.join(own, list(GROUP_KEY), "left").join(assigned, list(GROUP_KEY), "left")
    groups = with_record(
        groups,
        log.records(family, GROUP),
        "own_record",
        F.col("leader_epoch"),
        F.col("value.epoch").alias("stored_epoch"),
        *also,
    )
    groups = with_record(
        groups,
        log.records(family, ASSIGNMENT_EPOCH),
        "assignment_record",
        F.col("value.assignment_epoch").alias("stored_assignment_epoch"),
    )
    first = F.lit(log.rules.initial_epoch)
    return (
        groups.withColumnRenamed("own_record", "record_offset")
        .withColumn("epoch", F.coalesce("stored_epoch", first))
        .withColumn(
            "assignment_epoch",
            F.when(F.col("assignment_removed"), REMOVED_ASSIGNMENT_EPOCH).otherwise(
                F.coalesce("stored_assignment_epoch", first)
            ),
        )
    )


def with_members(groups: DataFrame, members: DataFrame, stable: str) -> DataFrame:
    """Count the members of groups, and those that are not where the group wants them.

    Args:
        groups: What `group_epochs` returns.
        members: `coordinator_partition`, `group_id`, `member_epoch`, `state`.
        stable: The word of a member's state when nothing is left to do.

    Returns:
        The groups with `member_count` and `is_reconciled`.
    """
    target = groups.select(*GROUP_KEY, F.col("assignment_epoch").alias("wanted_epoch"))
    there = (F.col("state") == stable) & (F.col("member_epoch") == F.col("wanted_epoch"))
    counted = (
        members.join(target, list(GROUP_KEY), "inner")
        .groupBy(*GROUP_KEY)
        .agg(
            F.count(F.lit(1)).cast("int").alias("counted"),
            F.min(F.coalesce(there, F.lit(col=False))).alias("all_there"),
        )
    )
    return (
        groups.join(counted, list(GROUP_KEY), "left")
        .withColumn("member_count", F.coalesce("counted", F.lit(0)))
        .withColumn("is_reconciled", F.coalesce("all_there", F.lit(col=True)))
    )


def settled_state() -> Column:
    """Return Assigning, Reconciling or Stable of a group that has members."""
    return (
        F.when(F.col("epoch") > F.col("assignment_epoch"), "Assigning")
        .when(~F.col("is_reconciled"), "Reconciling")
        .otherwise("Stable")
    )


def group_rows(groups: DataFrame, family: str, state: Column, protocol: Column) -> DataFrame:
    """Return groups as rows of `groups` without completeness.

    Args:
        groups: What `with_members` returns.
        family: Their type, which is also their protocol type.
        state: Of a group with members.
        protocol: The assignor in use.
    """
    return groups.select(
        "group_id",
        F.lit(family).alias("group_type"),
        F.lit(family).alias("protocol_type"),
        F.when(F.col("member_count") == 0, "Empty").otherwise(state).alias("state"),
        "epoch",
        "assignment_epoch",
        protocol.alias("protocol"),
        F.lit(None).cast("string").alias("leader"),
        F.lit(None).cast("timestamp").alias("state_timestamp"),
        "member_count",
        "coordinator_partition",
        "record_offset",
        "leader_epoch",
        F.col("since").alias("known_from"),
    )
