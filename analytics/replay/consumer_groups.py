"""Consumer groups of the protocol of KIP-848 (``ConsumerGroup``), classic members among them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark.sql import functions as F

from analytics.replay.assigned import topic_partitions
from analytics.replay.group_epochs import group_epochs, group_rows, settled_state, with_members
from analytics.replay.group_log import GroupLog
from analytics.replay.group_records import CONSUMER, CURRENT, MEMBER, TARGET
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
from analytics.replay.stored_values import present, text

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


def consumer_groups(log: GroupLog) -> DataFrame:
    """Return the consumer groups, as rows of `groups` without completeness."""
    members = _members(log)
    groups = with_members(group_epochs(log, CONSUMER), members, STABLE)
    groups = groups.join(_preferred_assignor(members), list(GROUP_KEY), "left")
    assignor = F.coalesce("preferred_assignor", F.lit(log.rules.default_consumer_assignor))
    return group_rows(groups, CONSUMER, settled_state(), assignor)


def consumer_members(log: GroupLog) -> DataFrame:
    """Return the members of consumer groups, as rows of `members`."""
    return _members(log)


def consumer_assignments(log: GroupLog) -> DataFrame:
    """Return what members have, give back and shall have, as rows of `assignments`.

    `topic` is null: records name topics by id.
    """
    members = with_record(
        member_records(log.kept, CONSUMER),
        log.records(CONSUMER, CURRENT),
        "current_record",
        F.col("value.member_epoch").alias("epoch"),
        F.col("value.assigned_partitions").alias("current"),
        F.col("value.partitions_pending_revocation").alias("pending_revocation"),
    ).where(~F.col("has_left"))
    targets = with_record(
        target_records(log.kept, CONSUMER),
        log.records(CONSUMER, TARGET),
        "target_record",
        F.col("value.topic_partitions").alias("target"),
    ).join(group_epochs(log, CONSUMER).select(*GROUP_KEY, "assignment_epoch"), list(GROUP_KEY))
    return (
        topic_partitions(members, CONSUMER, "current", F.col("epoch"))
        .unionByName(topic_partitions(members, CONSUMER, "pending_revocation", F.col("epoch")))
        .unionByName(topic_partitions(targets, CONSUMER, "target", F.col("assignment_epoch")))
    )


def _members(log: GroupLog) -> DataFrame:
    members = with_record(
        member_records(log.kept, CONSUMER),
        log.records(CONSUMER, MEMBER),
        "member_record",
        F.col("value").alias("about"),
    )
    members = with_record(
        members,
        log.records(CONSUMER, CURRENT),
        "current_record",
        F.col("value.member_epoch").alias("stored_epoch"),
        F.col("value.previous_member_epoch").alias("stored_previous_epoch"),
        F.col("value.state").alias("stored_state"),
    )
    about = F.col("about")
    classic = about["classic_member_metadata"]
    return members.select(
        "coordinator_partition",
        "group_id",
        F.lit(CONSUMER).alias("group_type"),
        "member_id",
        about["instance_id"].alias("group_instance_id"),
        about["client_id"].alias("client_id"),
        about["client_host"].alias("client_host"),
        about["rack_id"].alias("rack_id"),
        epoch_reached(F.col("stored_epoch")).alias("member_epoch"),
        epoch_before(F.col("stored_previous_epoch")).alias("previous_member_epoch"),
        member_state(PARTITION_STATES).alias("state"),
        about["subscribed_topic_names"].alias("subscribed_topics"),
        text(about["subscribed_topic_regex"]).alias("subscribed_regex"),
        text(about["server_assignor"]).alias("server_assignor"),
        present(about["rebalance_timeout_ms"]).alias("rebalance_timeout_ms"),
        present(classic["session_timeout_ms"]).alias("session_timeout_ms"),
        F.coalesce(classic.isNotNull(), F.lit(col=False)).alias("is_classic"),
        F.lit(None).cast("string").alias("process_id"),
        F.lit(None).cast("int").alias("topology_epoch"),
        F.col("member_record").isNull().alias("lacks_metadata"),
    )


def _preferred_assignor(members: DataFrame) -> DataFrame:
    """Return the assignor that most members of a group ask for: `preferred_assignor`."""
    votes = (
        members.where("server_assignor is not null")
        .groupBy(*GROUP_KEY, "server_assignor")
        .agg(F.count(F.lit(1)).alias("votes"))
    )
    return votes.groupBy(*GROUP_KEY).agg(
        F.max_by("server_assignor", F.struct("votes", "server_assignor")).alias(
            "preferred_assignor"
        )
    )
