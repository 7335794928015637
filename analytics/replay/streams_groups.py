"""Streams groups and their members' tasks (``StreamsGroup``, KIP-1071)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark.sql import functions as F

from analytics.replay.assigned import tasks
from analytics.replay.epoch_members import current_and_target, epoch_members
from analytics.replay.group_epochs import group_epochs, group_rows, settled_state, with_members
from analytics.replay.group_log import GroupLog
from analytics.replay.group_records import STREAMS, TOPOLOGY
from analytics.replay.latest import later
from analytics.replay.lives import GROUP_KEY
from analytics.replay.member_records import STABLE, with_record
from analytics.replay.stored_values import present
from analytics.replay.union import union_all

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
    return epoch_members(
        log,
        STREAMS,
        MEMBER_STATES,
        group_instance_id="about.instance_id",
        rebalance_timeout_ms=present(F.col("about.rebalance_timeout_ms")),
        process_id="about.process_id",
        topology_epoch="about.topology_epoch",
    )


def streams_assignments(log: GroupLog) -> DataFrame:
    """Return the tasks that members have, give back and shall have, as rows of `assignments`."""
    members, targets = current_and_target(
        log,
        STREAMS,
        [*_lists("current", "_tasks"), *_lists("pending_revocation", "_tasks_pending_revocation")],
        _lists("target", "_tasks"),
    )
    sources = [
        (members, "current", F.col("epoch")),
        (members, "pending_revocation", F.col("epoch")),
        (targets, "target", F.col("assignment_epoch")),
    ]
    return union_all(
        tasks(frame, kind, role, f"{kind}_{role}", epoch)
        for frame, kind, epoch in sources
        for role in ROLES
    )


def _lists(kind: str, suffix: str) -> list[Column]:
    return [F.col(f"value.{role}{suffix}").alias(f"{kind}_{role}") for role in ROLES]


def _is_ready(log: GroupLog) -> Column:
    """Whether the group's topology is usable, as far as its release can tell from records."""
    if not log.rules.streams_readiness_is_recorded:
        return F.lit(col=False)
    same = F.col("topology_epoch") == F.col("validated_epoch")
    return F.coalesce(same, F.lit(col=False))
