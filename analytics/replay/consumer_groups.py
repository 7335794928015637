"""Consumer groups of the protocol of KIP-848 (``ConsumerGroup``), classic members among them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark.sql import functions as F

from analytics.replay.assigned import topic_partitions
from analytics.replay.epoch_members import current_and_target, epoch_members
from analytics.replay.group_epochs import group_epochs, group_rows, settled_state, with_members
from analytics.replay.group_log import GroupLog
from analytics.replay.group_records import CONSUMER
from analytics.replay.lives import GROUP_KEY
from analytics.replay.member_records import PARTITION_STATES, STABLE
from analytics.replay.stored_values import present, text

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


def consumer_groups(log: GroupLog) -> DataFrame:
    """Return the consumer groups, as rows of `groups` without completeness."""
    members = consumer_members(log)
    groups = with_members(group_epochs(log, CONSUMER), members, STABLE)
    groups = groups.join(_preferred_assignor(members), list(GROUP_KEY), "left")
    assignor = F.coalesce("preferred_assignor", F.lit(log.rules.default_consumer_assignor))
    return group_rows(groups, CONSUMER, settled_state(), assignor)


def consumer_members(log: GroupLog) -> DataFrame:
    """Return the members of consumer groups, as rows of `members`."""
    about = F.col("about")
    classic = about["classic_member_metadata"]
    return epoch_members(
        log,
        CONSUMER,
        PARTITION_STATES,
        group_instance_id="about.instance_id",
        subscribed_topics="about.subscribed_topic_names",
        subscribed_regex=text(about["subscribed_topic_regex"]),
        server_assignor=text(about["server_assignor"]),
        rebalance_timeout_ms=present(about["rebalance_timeout_ms"]),
        session_timeout_ms=present(classic["session_timeout_ms"]),
        is_classic=F.coalesce(classic.isNotNull(), F.lit(col=False)),
    )


def consumer_assignments(log: GroupLog) -> DataFrame:
    """Return what members have, give back and shall have, as rows of `assignments`.

    `topic` is null: records name topics by id.
    """
    members, targets = current_and_target(
        log,
        CONSUMER,
        [
            F.col("value.assigned_partitions").alias("current"),
            F.col("value.partitions_pending_revocation").alias("pending_revocation"),
        ],
        [F.col("value.topic_partitions").alias("target")],
    )
    return (
        topic_partitions(members, CONSUMER, "current", F.col("epoch"))
        .unionByName(topic_partitions(members, CONSUMER, "pending_revocation", F.col("epoch")))
        .unionByName(topic_partitions(targets, CONSUMER, "target", F.col("assignment_epoch")))
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
