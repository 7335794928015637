"""Share groups and their members (``ShareGroup``, KIP-932); not their partitions' state."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark.sql import functions as F

from analytics.replay.assigned import topic_partitions
from analytics.replay.epoch_members import current_and_target, epoch_members
from analytics.replay.group_epochs import group_epochs, group_rows, with_members
from analytics.replay.group_log import GroupLog
from analytics.replay.group_records import SHARE
from analytics.replay.member_records import PARTITION_STATES, STABLE

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
    return epoch_members(
        log, SHARE, PARTITION_STATES, subscribed_topics="about.subscribed_topic_names"
    )


def share_assignments(log: GroupLog) -> DataFrame:
    """Return what members have and shall have, as rows of `assignments`; `topic` is null."""
    members, targets = current_and_target(
        log,
        SHARE,
        [F.col("value.assigned_partitions").alias("current")],
        [F.col("value.topic_partitions").alias("target")],
    )
    return topic_partitions(members, SHARE, "current", F.col("epoch")).unionByName(
        topic_partitions(targets, SHARE, "target", F.col("assignment_epoch"))
    )
