"""Why a committed offset was deleted: the one rule that history and the audit of expiry share.

Five writers leave tombstones of offsets: the cleanup, DeleteGroups, OffsetDelete, the deletion of a
topic (``OffsetMetadataManager``), and nobody else. The cleanup takes only what is due, so an act
that took something else was not the cleanup. Of the acts that were not, one that ends the group is
DeleteGroups, one right after the deletion of the topic is that.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark.sql import Window
from pyspark.sql import functions as F

from analytics.dump.files.model import CONSUMER_OFFSETS
from analytics.replay.groups.group_records import GROUP_KEY
from analytics.replay.history.group_spans import group_spans, protection_spans
from analytics.replay.history.offset_conditions import EMPTY, SIMPLE, STREAMS_GROUP
from analytics.replay.history.offset_lives import offset_events, pending_spans
from analytics.replay.history.removed_offsets import ACT, removed_offsets
from analytics.replay.history.topic_absence import with_topic_absence
from analytics.replay.log.archived_commits import with_undecided_removal
from analytics.replay.log.as_of import Decoded
from analytics.replay.log.coverage import WHOLE, Coverage
from analytics.replay.log.rules import ReplayRules

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

EXPIRATION, GROUP_DELETED, OFFSETS_DELETED, TOPIC_DELETED, UNKNOWN = (
    "expiration",
    "group_deleted",
    "offsets_deleted",
    "topic_deleted",
    "unknown",
)
HIGH, MEDIUM, LOW = "high", "medium", "low"

SHORTEST_RETENTION_MS = 60_000
"""`offsets.retention.minutes` is at least one."""

DEFAULT_RETENTION_MS = 604_800_000
"""Of `offsets.retention.minutes` since 2.0: seven days."""

TOPIC_DELETION_WITHIN = "interval 30 seconds"
"""How long after the deletion of a topic the coordinators forget its offsets: they are told at
once, and write in less than a second where they are not overloaded."""


def with_removal_cause(
    removed: DataFrame,
    *,
    offsets_can_be_deleted: bool = True,
    group_always_ends: bool = True,
    streams_groups_keep: bool = True,
    cleanups_may_be_lost: bool = False,
) -> DataFrame:
    """Add `cause` and `confidence` to removed offsets.

    Args:
        removed: Rows of `removed_offsets`, used twice, with what `with_topic_absence` adds,
            `is_surely_due` (boolean: it was due, or was not, under any retention there can be; null
            where that depends on the retention), `is_due` (boolean: by the retention that is known;
            null where none is), and what `with_undecided_removal` adds.
        offsets_can_be_deleted: Whether the release knows OffsetDelete (2.4, KIP-496).
        group_always_ends: Whether the deletion of any group leaves a tombstone of the group (4.0);
            before, a group that never had a generation leaves none.
        streams_groups_keep: Whether a streams group with members surely keeps the offsets of its
            topics; not in 4.1 (``StreamsGroup.isSubscribedToTopic``), where it does once its
            topology is configured: after a load of its partition with the next heartbeat, which
            leaves no record.
        cleanups_may_be_lost: Whether records of other groups are missing, which a cleanup may have
            taken in the same second.

    Returns:
        The rows with `cause` (expiration, group_deleted, offsets_deleted, topic_deleted, unknown),
        `confidence` (high, medium, low) and `may_not_be_kept` (boolean: whether the group kept the
        offset is not known, then neither of the due ones is). Several groups that lose offsets in
        one second are a cleanup by all appearance, whatever retention was given: it may have been
        another then. In a dump that shows such a cleanup nothing is concluded from the retention
        given.
    """
    deletion = _deletion(
        offsets_can_be_deleted=offsets_can_be_deleted, group_always_ends=group_always_ends
    )
    undecided = _said(UNKNOWN, LOW)
    told = F.col("is_known") | F.col("removed_pending") | F.col("repeats")
    # Whether it was due rests on the commit; what its topic's deletion took does not.
    by_topic = F.col("undecided").isNotNull() & F.col("topic_gone")
    judged = (
        F.when(by_topic, _said(TOPIC_DELETED, MEDIUM))
        .when(~told | ~F.col("some_known"), undecided)
        .when(F.col("topic_gone") & ~F.col("row_due"), _said(TOPIC_DELETED, HIGH))
        .when(F.col("topic_gone"), _said(TOPIC_DELETED, MEDIUM))
        .when(F.col("some_not_due"), deletion)
        .when(F.col("all_due"), _said(EXPIRATION, HIGH))
        .when(F.col("at_once"), _said(EXPIRATION, LOW))
        .when(F.col("cleanup_shown") | F.col("at").isNull(), undecided)
        .when(F.col("some_kept_by_setting"), deletion)
        .when(F.lit(cleanups_may_be_lost), undecided)
        .otherwise(_weaker(deletion))
    )
    return (
        _with_act_facts(_with_doubt(removed, streams_groups_keep=streams_groups_keep))
        .withColumn("judged", judged)
        .withColumn("cause", F.col("judged.cause"))
        .withColumn("confidence", F.col("judged.confidence"))
        .drop("judged", *_FACTS)
    )


_FACTS = (
    "is_known",
    "row_due",
    "topic_gone",
    "some_not_due",
    "some_kept_by_setting",
    "all_due",
    "some_known",
    "all_absent",
    "some_absence_unknown",
    "one_topic_of_many",
    "is_of_one_topic",
    "at_once",
    "cleanup_shown",
)


def _with_doubt(removed: DataFrame, *, streams_groups_keep: bool) -> DataFrame:
    doubt = F.lit(col=False)
    if not streams_groups_keep:
        doubt = (F.col("condition") == STREAMS_GROUP) & F.col("kept_by").isNotNull()
    due = {
        name: F.when(~F.col("may_not_be_kept"), F.col(name)) for name in ("is_due", "is_surely_due")
    }
    return removed.withColumn("may_not_be_kept", F.coalesce(doubt, F.lit(col=False))).withColumns(
        due
    )


def _with_act_facts(removed: DataFrame) -> DataFrame:
    """Add what the rows of an act say together."""
    act = Window.partitionBy(*ACT)
    known, no = F.col("is_known"), F.lit(col=False)
    gone = F.col("at") <= F.col("topic_deleted_at") + F.expr(TOPIC_DELETION_WITHIN)
    due = known & F.coalesce("is_surely_due", "is_due", no)
    # What was pending the cleanup would have left alone.
    not_due = (known & ~F.col("is_surely_due")) | F.col("removed_pending")
    # Nobody but the cleanup takes offsets of several groups at once, if no topic goes.
    at_once = (F.col("groups_at_once") > 1) & ~F.col("topic_gone") & ~F.col("all_absent")
    one_topic = (F.col("groups_at_once") > 1) & (F.col("topics_at_once") == 1)
    is_known = F.col("removed").isNotNull() & F.col("undecided").isNull()
    facts = (
        removed.withColumn("is_known", is_known)
        .withColumn("row_due", due)
        .withColumn("topic_gone", F.coalesce(gone, no))
        .withColumn("some_not_due", _any(not_due).over(act))
        .withColumn("some_kept_by_setting", _any(known & ~F.col("is_due")).over(act))
        .withColumn("all_due", F.coalesce(F.min(F.when(known, F.col("row_due"))).over(act), no))
        .withColumn("some_known", _any(known | F.col("removed_pending")).over(act))
        .withColumn("all_absent", F.min(F.coalesce("topic_absent", no)).over(act))
        .withColumn("some_absence_unknown", _any(F.col("topic_absent").isNull()).over(act))
        .withColumn("one_topic_of_many", one_topic)
        .withColumn("is_of_one_topic", F.size(F.collect_set("topic").over(act)) == 1)
        .withColumn("at_once", at_once)
    )
    undecided = known & F.col("at_once") & ~F.col("some_not_due") & ~F.col("all_due")
    undecided &= ~F.col("may_not_be_kept")
    shown = facts.agg(F.coalesce(_any(undecided), no).alias("cleanup_shown"))
    return facts.join(F.broadcast(shown), how="cross")


def removal_causes(
    decoded: Decoded,
    topics: DataFrame,
    rules: ReplayRules,
    *,
    present: DataFrame | None = None,
    coverage: Coverage = WHOLE,
) -> DataFrame:
    """Return the cause of every offset tombstone, as far as the dump alone shows it.

    The rows on the way are few beside commits, and used several times: they are computed here.

    Args:
        decoded: Decoded tables, cut at an instant.
        topics: The state table at that instant.
        rules: Of the release.
        present: What `topics_present` returns.
        coverage: What the dump holds.

    Returns:
        `coordinator_partition`, `group_id`, `record_offset`, `cause`, `confidence`.
    """
    groups = group_spans(decoded).localCheckpoint()
    removed = removed_offsets(
        offset_events(decoded, rules),
        pending_spans(decoded, rules),
        groups,
        protection_spans(decoded, groups).localCheckpoint(),
        topics,
    ).localCheckpoint()
    judged = with_removal_cause(
        with_undecided_removal(with_topic_absence(removed, topics, decoded, present), coverage)
        .withColumn("is_surely_due", surely_due())
        .withColumn("is_due", F.lit(None).cast("boolean")),
        group_always_ends=rules.groups_end_by_tombstones,
        streams_groups_keep=rules.streams_readiness_is_recorded,
        cleanups_may_be_lost=cleanups_may_be_lost(coverage),
    )
    return judged.select(
        *GROUP_KEY, F.col("position").alias("record_offset"), "cause", "confidence"
    )


def cleanups_may_be_lost(coverage: Coverage) -> bool:
    """Return whether a dump lacks records of the offsets topic that may tell of a cleanup."""
    return bool(coverage.losses_of_topic(CONSUMER_OFFSETS) or coverage.absent.get(CONSUMER_OFFSETS))


def surely_due() -> Column:
    """Return whether a removed offset was due whatever the retention was; null where that matters.

    Under a retention of less than the default of seven days the offset may have been due earlier,
    under none before a minute was over.
    """
    base = F.coalesce(
        F.when(F.col("condition") == EMPTY, F.col("state_ms")), F.col("removed.commit_ms")
    )
    earliest, latest = F.col("not_before_ms"), F.col("not_after_ms")
    expire = F.col("removed.expire_ms")
    return (
        F.when(F.col("kept_by").isNotNull(), F.lit(col=False))
        .when(
            expire != -1,
            F.when(earliest >= expire, F.lit(col=True)).when(latest < expire, F.lit(col=False)),
        )
        .when(latest - base < SHORTEST_RETENTION_MS, F.lit(col=False))
        .when(earliest - base >= DEFAULT_RETENTION_MS, F.lit(col=True))
    )


def _deletion(*, offsets_can_be_deleted: bool, group_always_ends: bool) -> Column:
    """Return which deletion an act was that the cleanup was not."""
    nothing_left = F.col("offsets_left") == 0
    is_whole = F.col("condition").isin(SIMPLE, EMPTY) & nothing_left
    # Where nothing says which topics there are, the act may as well be the deletion of one.
    unknown = F.col("some_absence_unknown")

    # A topic that is gone in the end may have gone later than its offsets.
    may_be_topic = F.col("all_absent") | (unknown & F.col("is_of_one_topic"))
    # An operator takes offsets of one group at a time.
    is_topic = may_be_topic & F.col("one_topic_of_many")
    if not offsets_can_be_deleted:
        is_topic |= F.col("all_absent")

    def chosen_as(cause: str) -> Column:
        return F.when(unknown, _said(cause, MEDIUM)).otherwise(_said(cause, HIGH))

    chosen = F.when(is_topic, _said(TOPIC_DELETED, MEDIUM))
    if group_always_ends:
        chosen = chosen.when(F.col("group_ended"), chosen_as(GROUP_DELETED))
    if offsets_can_be_deleted:
        chosen = chosen.when(may_be_topic, _said(UNKNOWN, LOW))
    if not group_always_ends:
        chosen = chosen.when(F.col("group_ended"), chosen_as(GROUP_DELETED))
        chosen = chosen.when(is_whole, _said(GROUP_DELETED, MEDIUM))
    if offsets_can_be_deleted:
        return chosen.otherwise(chosen_as(OFFSETS_DELETED))
    return chosen.otherwise(_said(TOPIC_DELETED, MEDIUM))


def _said(cause: str, confidence: str) -> Column:
    return F.struct(F.lit(cause).alias("cause"), F.lit(confidence).alias("confidence"))


def _weaker(said: Column) -> Column:
    return F.struct(said["cause"].alias("cause"), F.lit(LOW).alias("confidence"))


def _any(condition: Column) -> Column:
    return F.max(F.coalesce(condition, F.lit(col=False)))
