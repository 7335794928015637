"""Streams groups and their members' tasks (``StreamsGroup``, KIP-1071)."""

from __future__ import annotations

from functools import reduce
from typing import TYPE_CHECKING

from pyspark.sql import functions as F

from analytics.replay.assigned import tasks
from analytics.replay.group_epochs import group_epochs, group_rows, settled_state, with_members
from analytics.replay.group_log import GroupLog
from analytics.replay.group_records import CURRENT, MEMBER, STREAMS, TARGET, TOPOLOGY
from analytics.replay.latest import later
from analytics.replay.lives import GROUP_KEY
from analytics.replay.member_records import (
    STABLE,
    epoch_before,
    epoch_reached,
    member_records,
    member_state,
    target_records,
    with_record,
)
from analytics.replay.stored_values import present

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

MEMBER_STATES = {1: STABLE, 2: "UNREVOKED_TASKS", 3: "UNRELEASED_TASKS"}
ROLES = ("active", "standby", "warmup")


def streams_groups(log: GroupLog) -> DataFrame:
    """Return the streams groups, as rows of `groups` without completeness.

    Their assignor is in no record.
    """
    validated = F.col("value.validated_topology_epoch").alias("validated_epoch")
    groups = with_members(group_epochs(log, STREAMS, validated), streams_members(log), STABLE)
    topologies = log.about_groups(STREAMS, TOPOLOGY).where(
        later(F.col("last_value"), F.col("last_tombstone"))
    )
    groups = groups.join(
        topologies.select(*GROUP_KEY, F.col("last_value").alias("topology_record")),
        list(GROUP_KEY),
        "left",
    )
    groups = with_record(
        groups,
        log.records(STREAMS, TOPOLOGY),
        "topology_record",
        F.col("value.epoch").alias("topology_epoch"),
    )
    state = F.when(_is_ready(log), settled_state()).otherwise("NotReady")
    return group_rows(groups, STREAMS, state, F.lit(None).cast("string"))


def streams_members(log: GroupLog) -> DataFrame:
    """Return the members of streams groups, as rows of `members`."""
    members = with_record(
        member_records(log.kept, STREAMS),
        log.records(STREAMS, MEMBER),
        "member_record",
        F.col("value").alias("about"),
    )
    members = with_record(
        members,
        log.records(STREAMS, CURRENT),
        "current_record",
        F.col("value.member_epoch").alias("stored_epoch"),
        F.col("value.previous_member_epoch").alias("stored_previous_epoch"),
        F.col("value.state").alias("stored_state"),
    )
    return members.select(
        "coordinator_partition",
        "group_id",
        F.lit(STREAMS).alias("group_type"),
        "member_id",
        F.col("about.instance_id").alias("group_instance_id"),
        F.col("about.client_id").alias("client_id"),
        F.col("about.client_host").alias("client_host"),
        F.col("about.rack_id").alias("rack_id"),
        epoch_reached(F.col("stored_epoch")).alias("member_epoch"),
        epoch_before(F.col("stored_previous_epoch")).alias("previous_member_epoch"),
        member_state(MEMBER_STATES).alias("state"),
        F.lit(None).cast("array<string>").alias("subscribed_topics"),
        F.lit(None).cast("string").alias("subscribed_regex"),
        F.lit(None).cast("string").alias("server_assignor"),
        present(F.col("about.rebalance_timeout_ms")).alias("rebalance_timeout_ms"),
        F.lit(None).cast("int").alias("session_timeout_ms"),
        F.lit(col=False).alias("is_classic"),
        F.col("about.process_id").alias("process_id"),
        F.col("about.topology_epoch").alias("topology_epoch"),
        F.col("member_record").isNull().alias("lacks_metadata"),
    )


def streams_assignments(log: GroupLog) -> DataFrame:
    """Return the tasks that members have, give back and shall have, as rows of `assignments`."""
    members = with_record(
        member_records(log.kept, STREAMS),
        log.records(STREAMS, CURRENT),
        "current_record",
        F.col("value.member_epoch").alias("epoch"),
        *_lists("current", "_tasks"),
        *_lists("pending_revocation", "_tasks_pending_revocation"),
    ).where(~F.col("has_left"))
    targets = with_record(
        target_records(log.kept, STREAMS),
        log.records(STREAMS, TARGET),
        "target_record",
        *_lists("target", "_tasks"),
    ).join(group_epochs(log, STREAMS).select(*GROUP_KEY, "assignment_epoch"), list(GROUP_KEY))
    sources = [
        (members, "current", F.col("epoch")),
        (members, "pending_revocation", F.col("epoch")),
        (targets, "target", F.col("assignment_epoch")),
    ]
    return reduce(
        lambda all_, each: all_.unionByName(each),
        (
            tasks(frame, kind, role, f"{kind}_{role}", epoch)
            for frame, kind, epoch in sources
            for role in ROLES
        ),
    )


def _lists(kind: str, suffix: str) -> list[Column]:
    return [F.col(f"value.{role}{suffix}").alias(f"{kind}_{role}") for role in ROLES]


def _is_ready(log: GroupLog) -> Column:
    """Whether the group's topology is usable, as far as its release can tell from records."""
    if log.rules.streams_ready_by == "configuration":
        return F.lit(col=False)
    same = F.col("topology_epoch") == F.col("validated_epoch")
    return F.coalesce(same, F.lit(col=False))
