"""Every tombstone of an offset: what it removed, and what happened in the log around it.

What one act of the coordinator wrote about one group carries one time; records of message format 0
carry none, so there every tombstone stands for itself, between the times that commits near it name.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from pyspark.sql import Window
from pyspark.sql import functions as F

from analytics.replay.groups.group_records import GROUP_KEY
from analytics.replay.history.group_spans import OTHER_PROTOCOL, SUBSCRIBED, UNPARSEABLE
from analytics.replay.history.offset_conditions import with_condition
from analytics.replay.history.offset_lives import COMMITTED, KEY, REMOVED
from schemas import ZERO_UUID

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

ACT = (*GROUP_KEY, "act")
HEEDED = (SUBSCRIBED, UNPARSEABLE, OTHER_PROTOCOL)
"""What keeps offsets since 2.4."""

LATE_COMMITS_WITHIN = "interval 5 seconds"
"""How long after a topic's deletion a commit may still be one that its tombstones remove."""


def removed_offsets(
    events: DataFrame,
    pending: DataFrame,
    groups: DataFrame,
    protections: DataFrame,
    topics: DataFrame,
    protects: Sequence[str] = HEEDED,
) -> DataFrame:
    """Return every offset tombstone with what is known around it.

    Args:
        events: `offset_events`.
        pending: `pending_spans`.
        groups: `group_spans`.
        protections: `protection_spans`.
        topics: The state table `topics`.
        protects: Which reasons of `protections` the release heeds, what goes before first.

    Returns:
        Of each tombstone the columns of `offset_events` and `with_condition`; `act` (what tells
        one act of the coordinator about a group from the next), `removed_pending` (boolean: it
        removed commits of open transactions), `repeats` (boolean: an earlier tombstone of the same
        act removed the same offset), `group_ended` (boolean: the group's own tombstone belongs to
        the act), `offsets_left` (bigint: what the group had in force after the act),
        `groups_at_once` and `topics_at_once` (int: groups that lost offsets in the same second, and
        of how many topics), `topic_deleted_at`
        (timestamp: the latest deletion of the topic before it), and `not_before_ms` and
        `not_after_ms` (bigint: between these it was written; null where nothing shows one of them).
    """
    gone = _acts(events.where(F.col("event") == REMOVED)).localCheckpoint()
    light = _touched(events, gone).localCheckpoint()
    gone = _with_bounds(_with_offsets_left(gone, light), light).localCheckpoint()
    placed = with_condition(
        gone.withColumn("place", F.col("position")), groups, protections, protects
    )
    return with_topic_deletion(_with_group_end(_with_pending(placed, pending), groups), topics)


def _acts(gone: DataFrame) -> DataFrame:
    of_act = Window.partitionBy(*ACT, "topic", "partition").orderBy("position")
    in_order = Window.partitionBy(*GROUP_KEY).orderBy("position")
    # Cleanups of all partitions begin together until coordinators move (one timer before 4.0).
    at_once = Window.partitionBy(F.unix_seconds("at"))
    # Without a time: tombstones of a group that follow each other without a gap.
    run = F.row_number().over(in_order) - F.col("position") - 2
    return (
        gone.withColumn("act", F.coalesce(F.unix_micros("at"), run))
        .withColumn("repeats", F.row_number().over(of_act) > 1)
        .withColumn("topics_at_once", F.size(F.collect_set("topic").over(at_once)))
        .withColumn("groups_at_once", F.size(F.collect_set("group_id").over(at_once)))
        .withColumn(
            "groups_at_once", F.when(F.col("at").isNull(), 1).otherwise(F.col("groups_at_once"))
        )
    )


def _touched(events: DataFrame, gone: DataFrame) -> DataFrame:
    """Return what the offsets left and the bounds of time are told from, as light rows.

    These are the events of groups that lost offsets, and all of partitions with timeless ones.
    """
    change = (
        F.when((F.col("event") == COMMITTED) & F.col("removed").isNull(), 1)
        .when((F.col("event") == REMOVED) & F.col("removed").isNotNull(), -1)
        .otherwise(0)
    )
    groups = gone.select(*GROUP_KEY).distinct().withColumn("lost_offsets", F.lit(col=True))
    return (
        events.join(F.broadcast(groups), list(GROUP_KEY), "left")
        .join(F.broadcast(_timeless(gone)), "coordinator_partition", "left")
        .where("lost_offsets or is_timeless")
        .select(
            *KEY, "position", "at", "event", "commit_ms", "lost_offsets", change.alias("change")
        )
    )


def _timeless(gone: DataFrame) -> DataFrame:
    """Return the coordinators' partitions with tombstones that carry no time."""
    partitions = gone.where(F.col("at").isNull()).select("coordinator_partition").distinct()
    return partitions.withColumn("is_timeless", F.lit(col=True))


def _with_bounds(gone: DataFrame, events: DataFrame) -> DataFrame:
    """Bound the time of tombstones that carry none by what commits around them say."""
    order = Window.partitionBy("coordinator_partition").orderBy("position")
    said = F.coalesce(F.unix_millis("at"), F.when(F.col("commit_ms") > 0, F.col("commit_ms")))
    bounds = (
        events.join(F.broadcast(_timeless(gone)), "coordinator_partition", "left_semi")
        .groupBy("coordinator_partition", "position")
        .agg(F.max(said).alias("said"))
        .withColumn("after", F.max("said").over(order))
        .withColumn("before", F.min("said").over(order.rowsBetween(0, Window.unboundedFollowing)))
        .drop("said")
    )
    own = F.unix_millis("at")
    return (
        gone.join(bounds, ["coordinator_partition", "position"], "left")
        .withColumn("not_before_ms", F.coalesce(own, "after"))
        .withColumn("not_after_ms", F.coalesce(own, "before"))
        .drop("after", "before")
    )


def _with_offsets_left(gone: DataFrame, events: DataFrame) -> DataFrame:
    """Count, per act, the offsets of the group that it left in force."""
    order = Window.partitionBy(*GROUP_KEY).orderBy("position", "topic", "partition")
    counted = (
        events.where("lost_offsets")
        .select(*GROUP_KEY, "position", "event", F.sum("change").over(order).alias("in_force"))
        .where(F.col("event") == REMOVED)
    )
    left = (
        gone.select(*ACT, "position")
        .join(counted.drop("event"), [*GROUP_KEY, "position"])
        .groupBy(*ACT)
        .agg(F.max_by("in_force", "position").alias("offsets_left"))
    )
    return gone.join(left, list(ACT), "left")


def _with_pending(gone: DataFrame, pending: DataFrame) -> DataFrame:
    """Say whether a tombstone removed commits of open transactions."""
    ended = (
        pending.where(F.col("outcome") == REMOVED)
        .select(*KEY, F.col("until_position").alias("position"))
        .distinct()
        .withColumn("took", F.lit(col=True))
    )
    return (
        gone.join(ended, [*KEY, "position"], "left")
        .withColumn("removed_pending", F.coalesce("took", F.lit(col=False)))
        .drop("took")
    )


def _with_group_end(gone: DataFrame, groups: DataFrame) -> DataFrame:
    """Say whether the group's own tombstone was written at the same time."""
    ends = (
        groups.where(F.col("family").isNull() & F.col("from_at").isNotNull())
        .select(*GROUP_KEY, F.unix_micros("from_at").alias("act"))
        .distinct()
        .withColumn("ended", F.lit(col=True))
    )
    return (
        gone.join(ends, list(ACT), "left")
        .withColumn("group_ended", F.coalesce("ended", F.lit(col=False)))
        .drop("ended")
    )


def with_topic_deletion(gone: DataFrame, topics: DataFrame) -> DataFrame:
    """Find the latest deletion of the topic's life that the offset belonged to.

    A coordinator removes the offsets of a deleted topic once, all that its partition holds then
    (``onPartitionsDeleted``): what is committed behind those tombstones is for the next life.
    """
    deleted = F.broadcast(
        topics.where("deleted_at is not null").select(
            "topic", F.col("topic_id").alias("deleted_id"), "deleted_at"
        )
    )
    named = F.col("removed.topic_id")
    is_named = named.isNotNull() & (named != ZERO_UUID)
    # A commit without an id that came after the deletion is for the topic's next life.
    since = F.col("removed.at")
    is_later = (since > F.col("deleted_at") + F.expr(LATE_COMMITS_WITHIN)) | (
        (since > F.col("deleted_at")) & (F.col("removed.position") > F.col("purged_at"))
    )
    is_its_life = F.when(is_named, named == F.col("deleted_id")).otherwise(
        ~F.coalesce(is_later, F.lit(col=False))
    )
    # The metadata log and the coordinator's log are stamped by different threads.
    is_before = F.col("deleted_at") <= F.col("at") + F.expr("interval 1 second")
    of_deletion = Window.partitionBy("coordinator_partition", "topic", "deleted_id")
    found = (
        gone.select("coordinator_partition", "position", "topic", "at", "removed")
        .join(deleted, "topic")
        .where(is_before)
        .withColumn("purged_at", F.min("position").over(of_deletion))
        .where(is_its_life)
        .groupBy("coordinator_partition", "position")
        .agg(F.max("deleted_at").alias("topic_deleted_at"))
    )
    return gone.join(found, ["coordinator_partition", "position"], "left")
