"""Share groups and their members (``ShareGroup``, KIP-932); not their partitions' state."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark.sql import functions as F

from analytics.replay.assigned import topic_partitions
from analytics.replay.group_epochs import group_epochs, group_rows, with_members
from analytics.replay.group_log import GroupLog
from analytics.replay.group_records import CURRENT, MEMBER, SHARE, TARGET
from analytics.replay.lives import GROUP_KEY
from analytics.replay.member_records import (
    PARTITION_STATES,
    STABLE,
    epoch_before,
    epoch_reached,
    member_records,
    member_state,
    target_records,
    with_record,
)

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


def share_groups(log: GroupLog) -> DataFrame:
    """Return the share groups, as rows of `groups` without completeness.

    With members they are always Stable.
    """
    groups = with_members(group_epochs(log, SHARE), share_members(log), STABLE)
    return group_rows(groups, SHARE, F.lit("Stable"), F.lit(log.rules.share_assignor))


def share_members(log: GroupLog) -> DataFrame:
    """Return the members of share groups, as rows of `members`."""
    members = with_record(
        member_records(log.kept, SHARE),
        log.records(SHARE, MEMBER),
        "member_record",
        F.col("value").alias("about"),
    )
    members = with_record(
        members,
        log.records(SHARE, CURRENT),
        "current_record",
        F.col("value.member_epoch").alias("stored_epoch"),
        F.col("value.previous_member_epoch").alias("stored_previous_epoch"),
        F.col("value.state").alias("stored_state"),
    )
    return members.select(
        "coordinator_partition",
        "group_id",
        F.lit(SHARE).alias("group_type"),
        "member_id",
        F.lit(None).cast("string").alias("group_instance_id"),
        F.col("about.client_id").alias("client_id"),
        F.col("about.client_host").alias("client_host"),
        F.col("about.rack_id").alias("rack_id"),
        epoch_reached(F.col("stored_epoch")).alias("member_epoch"),
        epoch_before(F.col("stored_previous_epoch")).alias("previous_member_epoch"),
        member_state(PARTITION_STATES).alias("state"),
        F.col("about.subscribed_topic_names").alias("subscribed_topics"),
        F.lit(None).cast("string").alias("subscribed_regex"),
        F.lit(None).cast("string").alias("server_assignor"),
        F.lit(None).cast("int").alias("rebalance_timeout_ms"),
        F.lit(None).cast("int").alias("session_timeout_ms"),
        F.lit(col=False).alias("is_classic"),
        F.lit(None).cast("string").alias("process_id"),
        F.lit(None).cast("int").alias("topology_epoch"),
        F.col("member_record").isNull().alias("lacks_metadata"),
    )


def share_assignments(log: GroupLog) -> DataFrame:
    """Return what members have and shall have, as rows of `assignments`; `topic` is null."""
    members = with_record(
        member_records(log.kept, SHARE),
        log.records(SHARE, CURRENT),
        "current_record",
        F.col("value.member_epoch").alias("epoch"),
        F.col("value.assigned_partitions").alias("current"),
    ).where(~F.col("has_left"))
    targets = with_record(
        target_records(log.kept, SHARE),
        log.records(SHARE, TARGET),
        "target_record",
        F.col("value.topic_partitions").alias("target"),
    ).join(group_epochs(log, SHARE).select(*GROUP_KEY, "assignment_epoch"), list(GROUP_KEY))
    return topic_partitions(members, SHARE, "current", F.col("epoch")).unionByName(
        topic_partitions(targets, SHARE, "target", F.col("assignment_epoch"))
    )
