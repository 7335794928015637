"""Classic groups: each value of theirs is the whole group (``ClassicGroup``, KIP-62, KIP-345).

Only Empty and Stable can be recovered from records: a rebalance under way leaves none.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark.sql import functions as F

from analytics.replay.group_log import GroupLog
from analytics.replay.group_records import CLASSIC, CONSUMER_PROTOCOL, GROUP
from analytics.replay.latest import records_at
from analytics.replay.stored_values import instant, present, text

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame


def classic_groups(log: GroupLog) -> DataFrame:
    """Return the classic groups that have a record, as rows of `groups` without completeness."""
    value = F.col("value")
    return _found(log).select(
        "group_id",
        F.lit(CLASSIC).alias("group_type"),
        text(value["protocol_type"]).alias("protocol_type"),
        F.when(F.size(value["members"]) == 0, "Empty").otherwise("Stable").alias("state"),
        value["generation"].alias("epoch"),
        F.lit(None).cast("int").alias("assignment_epoch"),
        text(value["protocol"]).alias("protocol"),
        text(value["leader"]).alias("leader"),
        instant(value["current_state_timestamp"]).alias("state_timestamp"),
        F.size(value["members"]).alias("member_count"),
        "coordinator_partition",
        "record_offset",
        "leader_epoch",
        F.col("record_offset").alias("known_from"),
    )


def classic_members(log: GroupLog) -> DataFrame:
    """Return the members of classic groups, as rows of `members`."""
    member = F.col("member")
    session = present(member["session_timeout"])
    return _members(log).select(
        "group_id",
        F.lit(CLASSIC).alias("group_type"),
        member["member_id"].alias("member_id"),
        member["group_instance_id"].alias("group_instance_id"),
        member["client_id"].alias("client_id"),
        member["client_host"].alias("client_host"),
        member["subscription_decoded"]["rack_id"].alias("rack_id"),
        F.col("epoch").alias("member_epoch"),
        F.lit(None).cast("int").alias("previous_member_epoch"),
        F.lit(None).cast("string").alias("state"),
        member["subscription_decoded"]["topics"].alias("subscribed_topics"),
        F.lit(None).cast("string").alias("subscribed_regex"),
        F.lit(None).cast("string").alias("server_assignor"),
        F.coalesce(present(member["rebalance_timeout"]), session).alias("rebalance_timeout_ms"),
        session.alias("session_timeout_ms"),
        F.lit(col=True).alias("is_classic"),
        F.lit(None).cast("string").alias("process_id"),
        F.lit(None).cast("int").alias("topology_epoch"),
        member["subscription_decoded"]["fields_written"].alias("subscription_fields_written"),
        member["assignment_decoded"]["fields_written"].alias("assignment_fields_written"),
        _why_unread(F.col("protocol_type"), member).alias("missing"),
    )


def is_unread(member: Column) -> Column:
    """Return whether a member was given something that is not of the consumer protocol."""
    return (F.length(member["assignment"]) > 0) & member["assignment_decoded"].isNull()


def _why_unread(protocol_type: Column, member: Column) -> Column:
    """Return why nothing tells what a member was given; null where something does."""
    size = F.length(member["assignment"])
    return F.when(
        F.coalesce(protocol_type, F.lit("")) != CONSUMER_PROTOCOL,
        F.format_string(
            "the group is not a consumer group (%s): only its clients can read what they have",
            F.coalesce(protocol_type, F.lit("no protocol")),
        ),
    ).when(
        is_unread(member),
        F.format_string("the %d bytes of its assignment are not of the consumer protocol", size),
    )


def classic_assignments(log: GroupLog) -> DataFrame:
    """Return what members of classic groups of consumers were given, as rows of `assignments`."""
    topics = F.explode(F.col("member.assignment_decoded.assigned_partitions"))
    return (
        _members(log)
        .select("group_id", "epoch", "member.member_id", topics.alias("given"))
        .select(
            "group_id",
            F.lit(CLASSIC).alias("group_type"),
            "epoch",
            "member_id",
            F.lit("current").alias("kind"),
            F.lit(None).cast("string").alias("role"),
            F.lit(None).cast("string").alias("subtopology_id"),
            F.col("given.topic").alias("topic"),
            F.lit(None).cast("string").alias("topic_id"),
            F.explode("given.partitions").alias("partition"),
        )
    )


def _found(log: GroupLog) -> DataFrame:
    places = log.about_groups(CLASSIC, GROUP).select(
        "coordinator_partition", F.col("last_value").alias("record_offset")
    )
    return records_at(log.records(CLASSIC, GROUP), places).select(
        F.col("key.group").alias("group_id"),
        "coordinator_partition",
        "record_offset",
        "leader_epoch",
        "value",
    )


def _members(log: GroupLog) -> DataFrame:
    return _found(log).select(
        "group_id",
        text(F.col("value.protocol_type")).alias("protocol_type"),
        F.col("value.generation").alias("epoch"),
        F.explode("value.members").alias("member"),
    )
