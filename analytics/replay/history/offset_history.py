"""The table `offset_history`: every change of a committed offset, and what was in force around it.

A commit is one row where it took effect; one in a transaction took effect with the marker, and one
that was aborted is a row that changed nothing. Every tombstone is a row.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from pyspark.sql import Window
from pyspark.sql import functions as F

from analytics.replay.contract import as_table
from analytics.replay.groups.group_records import CLASSIC, GROUP_KEY
from analytics.replay.history.offset_causes import (
    ADMIN_OR_SIMPLE,
    UNKNOWN,
    cause_of_step_back,
    not_known,
    origin,
)
from analytics.replay.history.offset_lives import (
    KEY,
    PLACE,
    REMOVED,
    SAID,
    offset_events,
    transactional_commits,
)
from analytics.replay.history.shown_from import shown_from
from analytics.replay.log.archived_commits import (
    MAY_BE_ABORTED,
    MAY_HAVE_BEEN_ABORTED,
    is_undecided,
)
from analytics.replay.log.as_of import Decoded
from analytics.replay.log.coverage import WHOLE, Coverage
from analytics.replay.log.losses import lost_between, with_missing
from analytics.replay.log.rules import ReplayRules
from analytics.replay.log.stored_values import instant, present, uuid

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

COMMIT, TRANSACTION_COMMIT, TRANSACTION_ABORT, DELETE = (
    "commit",
    "transaction_commit",
    "transaction_abort",
    "delete",
)
_SLICES = 8
"""Into how many parts the commits of one group are laid, so that no task has to hold them all."""

_SLICE = (*GROUP_KEY, "slice")
_DONE_BY_HAND = ("group_deleted", "offsets_deleted")


@dataclass(frozen=True)
class Surroundings:
    """What commits are looked at beside.

    Attributes:
        moments: Of `group_moments`.
        owners: Of `owners`.
        removals: Causes of tombstones: `coordinator_partition`, `record_offset`, `cause`,
            `confidence`.
        births: Of `births`.
        losses: Of `losses`.
    """

    moments: DataFrame
    owners: DataFrame
    removals: DataFrame
    births: DataFrame
    losses: DataFrame


def offset_history(
    decoded: Decoded, rules: ReplayRules, around: Surroundings, coverage: Coverage = WHOLE
) -> DataFrame:
    """Return the table `offset_history`.

    Args:
        decoded: Decoded tables, cut at an instant.
        rules: Of the release.
        around: Of the same tables.
        coverage: What the dump holds.
    """
    changes = _with_owner(_with_group(_changes(decoded, rules), around.moments), around.owners)
    changes = _with_undecided(_with_previous(changes, rules), rules, coverage)
    told = _meaning(_with_losses(changes, coverage), coverage)
    removals = around.removals.select(
        "coordinator_partition", "record_offset", F.struct("cause", "confidence").alias("removal")
    )
    told = (
        told.join(F.broadcast(around.births), "topic", "left")
        .join(F.broadcast(around.losses), ["topic", "partition"], "left")
        .join(removals, ["coordinator_partition", "record_offset"], "left")
    )
    return as_table(_with_cause(told), "offset_history")


def _changes(decoded: Decoded, rules: ReplayRules) -> DataFrame:
    """Return commits that took effect, aborted ones and tombstones."""
    columns = (*KEY, "position", "at", *SAID, *PLACE)
    pending = F.col("position") != F.col("record_offset")
    word = (
        F.when(F.col("event") == REMOVED, DELETE)
        .when(pending, TRANSACTION_COMMIT)
        .otherwise(COMMIT)
    )
    events = offset_events(decoded, rules)
    effective = events.select(*columns, word.alias("event"))
    last = F.max_by(F.struct(*SAID, *PLACE, "end_at"), "record_offset").alias("last")
    aborted = (
        transactional_commits(decoded, rules)
        .where(~F.col("is_commit"))
        .groupBy(*KEY, "producer_id", "end_offset")
        .agg(last)
        .select(
            *KEY,
            F.col("end_offset").alias("position"),
            F.col("last.end_at").alias("at"),
            *(F.col(f"last.{name}").alias(name) for name in (*SAID, *PLACE)),
            F.lit(TRANSACTION_ABORT).alias("event"),
        )
    )
    return (
        effective.unionByName(aborted)
        .withColumn("record_offset", F.coalesce("record_offset", "position"))
        .withColumn("slice", _slice())
    )


def _with_group(changes: DataFrame, moments: DataFrame) -> DataFrame:
    """Add `group` and `group_members`: what the group was when the record was written."""
    slices = F.explode(F.sequence(F.lit(0), F.lit(_SLICES - 1)))
    beside = moments.withColumnRenamed("position", "record_offset").withColumn("slice", slices)
    written = Window.partitionBy(*_SLICE).orderBy("record_offset")
    so_far = written.rowsBetween(Window.unboundedPreceding, Window.currentRow)
    return (
        changes.unionByName(beside, allowMissingColumns=True)
        .withColumn("group", F.last("group", ignorenulls=True).over(so_far))
        .withColumn("group_members", F.sum(F.coalesce("joins", F.lit(0))).over(so_far))
        .where("event is not null")
        .drop("joins")
    )


def _with_owner(changes: DataFrame, owned: DataFrame) -> DataFrame:
    """Add `owner`: who had the partition when the record was written."""
    beside = owned.withColumnRenamed("position", "record_offset").withColumn("slice", _slice())
    # Where one loses it and another gets it in one record, the one that gets it comes last.
    written = Window.partitionBy(*_SLICE, "topic", "partition").orderBy(
        "record_offset", F.col("owner.member_id").isNotNull()
    )
    so_far = written.rowsBetween(Window.unboundedPreceding, Window.currentRow)
    return (
        changes.unionByName(beside, allowMissingColumns=True)
        .withColumn("owner", F.last("owner", ignorenulls=True).over(so_far))
        .where("event is not null")
    )


def _slice() -> Column:
    return F.pmod(F.xxhash64("topic", "partition"), F.lit(_SLICES)).cast("int")


def _with_previous(changes: DataFrame, rules: ReplayRules) -> DataFrame:
    """Add `previous`: what was in force before; leave out aborts of what a tombstone removed."""
    commit = F.col("event").isin(COMMIT, TRANSACTION_COMMIT)
    names = ("committed_offset", "record_offset", "commit_ms", "expire_ms", "topic_id")
    # Where a tombstone leaves commits pending, one that lies before it may take effect behind it.
    cleared = F.col("position") if rules.tombstones_remove_everything else F.lit(-1)
    known_since = F.when(commit, F.col("record_offset")).otherwise(cleared)
    after = F.when(
        F.col("event") != TRANSACTION_ABORT,
        F.struct(
            *(F.when(commit, F.col(name)).alias(name) for name in names),
            known_since.alias("known_since"),
        ),
    )
    effect = Window.partitionBy(*_SLICE, "topic", "partition").orderBy("position")
    before = effect.rowsBetween(Window.unboundedPreceding, -1)
    removed = F.max(F.when(F.col("event") == DELETE, F.col("position"))).over(before)
    gone = (F.col("event") == TRANSACTION_ABORT) & (F.col("record_offset") < F.col("removed"))
    if rules.tombstone_removes != "everything":
        gone = F.lit(col=False)
    return (
        changes.withColumn("after", after)
        .withColumn("previous", F.last("after", ignorenulls=True).over(before))
        .withColumn("removed", removed)
        .where(~F.coalesce(gone, F.lit(col=False)))
    )


def _with_undecided(changes: DataFrame, rules: ReplayRules, coverage: Coverage) -> DataFrame:
    """Add `undecided`: why it is not known that a commit, or the one before it, took effect."""
    if not coverage.undecided:
        return changes.withColumn("undecided", F.lit(None).cast("string"))
    own = is_undecided(coverage, F.col("topic_id"), is_commit=F.col("event") == COMMIT)
    order = Window.partitionBy(*_SLICE, "topic", "partition").orderBy("position")
    earlier = order.rowsBetween(Window.unboundedPreceding, -1)
    before = F.coalesce(F.last("own").over(earlier), F.lit(col=False))
    if not rules.tombstones_remove_everything:
        # What is pending outlives a tombstone, and takes effect behind it.
        is_removed = F.last("event").over(earlier) == DELETE
        before |= is_removed & F.coalesce(F.max("own").over(earlier), F.lit(col=False))
    return changes.withColumn("own", own).withColumn(
        "undecided", F.when(F.col("own"), MAY_BE_ABORTED).when(before, MAY_HAVE_BEEN_ABORTED)
    )


def _with_losses(changes: DataFrame, coverage: Coverage) -> DataFrame:
    """Add `complete` and `missing`; where a record before may be lost nothing is `previous`."""
    since = F.coalesce("previous.known_since", F.lit(-1))
    lost = lost_between(coverage, F.least(since, F.col("record_offset")), F.col("position"))
    words = F.concat(F.lit("the change before this one may be lost: "), lost)
    return with_missing(changes, F.concat_ws("; ", "undecided", words)).withColumn(
        "previous", F.when(F.col("complete"), F.col("previous"))
    )


def _meaning(changes: DataFrame, coverage: Coverage) -> DataFrame:
    changed = F.col("event").isin(COMMIT, TRANSACTION_COMMIT)
    in_transaction = F.col("event").isin(TRANSACTION_COMMIT, TRANSACTION_ABORT)
    deleted = F.col("event") == DELETE
    is_group_told = _no_loss_since(coverage, F.col("group.offset"))
    return changes.select(
        *KEY,
        "event",
        "committed_offset",
        "record_offset",
        *PLACE,
        uuid(F.col("topic_id")).alias("topic_id"),
        F.col("previous.committed_offset").alias("previous_offset"),
        F.when(changed, F.col("committed_offset") - F.col("previous.committed_offset")).alias(
            "advance"
        ),
        present(F.col("committed_leader_epoch")).alias("committed_leader_epoch"),
        instant(F.col("commit_ms")).alias("commit_timestamp"),
        instant(F.col("expire_ms")).alias("expire_timestamp"),
        F.col("position").alias("effective_offset"),
        F.col("at").alias("effective_timestamp"),
        F.when(is_group_told, F.coalesce("owner.epoch", "group.epoch")).alias("epoch"),
        F.when(is_group_told & ~deleted, F.col("owner.member_id")).alias("member_id"),
        F.col("previous.record_offset").alias("previous_record_offset"),
        instant(F.col("previous.commit_ms")).alias("previous_commit_timestamp"),
        instant(F.col("previous.expire_ms")).alias("previous_expire_timestamp"),
        uuid(F.col("previous.topic_id")).alias("previous_topic_id"),
        F.when(is_group_told, F.col("group.family")).alias("group_type"),
        F.when(_is_known(coverage), F.col("group_members")).alias("group_members"),
        F.when(in_transaction, F.col("producer_id")).alias("producer_id"),
        (_is_known(coverage) & ~_may_be_aborted()).alias("is_known"),
        _may_be_aborted().alias("may_be_aborted"),
        "complete",
        "missing",
    )


def _is_known(coverage: Coverage) -> Column:
    """Return whether the dump shows what the group was, or that there was none.

    A classic record that compaction left was in force up to where it took records, with all its
    members. What followed a tombstone, or a record of a newer group, it may have taken: a life of
    another type, members whose records were written again. A loss may have taken anything.
    """
    record, shown = F.col("record_offset"), shown_from(coverage)
    is_whole = F.equal_null(F.col("group.family"), F.lit(CLASSIC)) | (record >= shown)
    told = F.col("group").isNotNull() & _no_loss_since(coverage, F.col("group.offset")) & is_whole
    return told | (_no_loss_since(coverage, F.lit(-1)) & (record >= shown))


def _may_be_aborted() -> Column:
    return F.coalesce(F.col("undecided") == MAY_BE_ABORTED, F.lit(col=False))


def _no_loss_since(coverage: Coverage, offset: Column) -> Column:
    since = F.coalesce(offset, F.lit(-1))
    return lost_between(coverage, since, F.col("record_offset")).isNull()


def _with_cause(told: DataFrame) -> DataFrame:
    deleted = F.col("event") == DELETE
    back = ~deleted & (F.col("advance") < 0)
    by = (
        F.when(
            deleted,
            F.when(F.col("removal.cause").isin(*_DONE_BY_HAND), ADMIN_OR_SIMPLE).otherwise(UNKNOWN),
        )
        .when(F.col("may_be_aborted"), UNKNOWN)
        .otherwise(origin(is_certain=F.col("is_known")))
    )
    unknown = ~F.col("complete") & (F.col("event") != TRANSACTION_ABORT)
    why = F.when(deleted, F.col("removal")).when(back, cause_of_step_back())
    return (
        told.withColumn("origin", by)
        .withColumn("why", F.when(unknown, not_known()).otherwise(why))
        .withColumn("cause", F.col("why.cause"))
        .withColumn("confidence", F.col("why.confidence"))
    )
