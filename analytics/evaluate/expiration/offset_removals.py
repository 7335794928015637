"""The audit of the past: every offset tombstone, its cause and a verdict: `offset_removals`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark.sql import functions as F

from analytics.dump.files.model import CONSUMER_OFFSETS
from analytics.evaluate.expiration.coordinator_beginnings import with_beginning
from analytics.evaluate.expiration.expiry import as_time, is_due, with_expiry
from analytics.evaluate.expiration.offset_log import OffsetLog, modern_since, with_transactions
from analytics.evaluate.expiration.removal_verdicts import (
    CANNOT_TELL,
    is_unparsed_expire_time,
    with_verdict,
)
from analytics.evaluate.expiration.retention import ASSUMED, RECORD, Retention, with_retention
from analytics.replay.contract import as_table
from analytics.replay.history.removal_causes import (
    EXPIRATION,
    LOW,
    MEDIUM,
    SHORTEST_RETENTION_MS,
    TOPIC_DELETED,
    UNKNOWN,
    cleanups_may_be_lost,
    with_removal_cause,
)
from analytics.replay.history.removed_offsets import removed_offsets
from analytics.replay.history.topic_absence import with_topic_absence
from analytics.replay.log.archived_commits import with_undecided_removal
from analytics.replay.log.coverage import WHOLE, Coverage
from analytics.replay.log.losses import lost_between
from schemas.expiration_rules import AuditRules

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

OFFSET_DELETE_SINCE = ("2.4-3.9", "current")


def offset_removals(  # noqa: PLR0913 - each is a fact of its own
    log: OffsetLog,
    topics: DataFrame,
    retention: Retention,
    as_of_ms: int,
    *,
    audit: AuditRules,
    present: DataFrame | None = None,
    starts: DataFrame | None = None,
    coverage: Coverage = WHOLE,
) -> DataFrame:
    """Return the table `offset_removals`.

    What is looked at are tombstones, few beside commits; it is computed here, once.

    Args:
        log: The log up to the instant.
        topics: The state table.
        retention: Of the coordinators.
        as_of_ms: The instant, in epoch milliseconds: no record is later.
        audit: How much later than one check interval is on time.
        present: What `topics_present` returns.
        starts: `coordinator_starts`; None where there is no metadata log.
        coverage: Where records are lost.
    """
    removed = removed_offsets(
        log.events(), log.pending, log.groups, log.protections, topics, log.protects
    )
    removed = removed.withColumn("not_after_ms", F.coalesce("not_after_ms", F.lit(as_of_ms)))
    told = _with_expiry(with_topic_absence(removed, topics, log.decoded, present), log, retention)
    told = (
        with_undecided_removal(told, coverage)
        .withColumn("is_unparsed", is_unparsed_expire_time(log.era))
        .withColumn("is_due", _due_by_setting())
        .withColumn("is_surely_due", _surely_due(log))
        .localCheckpoint()
    )
    judged = with_removal_cause(
        told,
        offsets_can_be_deleted=log.era.name in OFFSET_DELETE_SINCE,
        group_always_ends=log.replay.groups_end_by_tombstones,
        streams_groups_keep=log.replay.streams_readiness_is_recorded,
        cleanups_may_be_lost=cleanups_may_be_lost(coverage),
    )
    # A deletion by hand of such offsets looks the same.
    may_be_bug = F.col("is_unparsed") & (F.col("cause") == EXPIRATION) & ~_at_some_time()
    judged = judged.withColumn(
        "confidence", F.when(may_be_bug, MEDIUM).otherwise(F.col("confidence"))
    )
    rows = (
        _with_losses(with_verdict(with_beginning(judged, log.decoded, starts), audit), coverage)
        .withColumn("last_offset", _if_decided(F.col("removed.committed_offset")))
        .withColumn("last_commit_timestamp", _if_decided(as_time(F.col("commit_ms"))))
        .withColumn("removed_at", F.col("at"))
        .withColumn("record_offset", F.col("position"))
    )
    return as_table(rows, "offset_removals")


def _if_decided(value: Column) -> Column:
    return F.when(F.col("undecided").isNull(), value)


def _with_losses(judged: DataFrame, coverage: Coverage) -> DataFrame:
    """Judge nothing where a lost record may have changed the offset or its group before it went."""
    if not coverage.losses_of_topic(CONSUMER_OFFSETS):
        return judged
    never = F.lit(-1)
    commit, group = F.coalesce("removed.position", never), F.coalesce("group_from", never)
    lost = lost_between(coverage, F.least(commit, group), F.col("position"))
    untold = lost.isNotNull() & (F.col("cause") != TOPIC_DELETED)
    may_not_be_it = lost_between(coverage, commit, F.col("position")).isNotNull()
    told: dict[str, str | Column] = {
        "cause": UNKNOWN,
        "confidence": LOW,
        "verdict": CANNOT_TELL,
        "reason": F.concat(F.lit("what was there before it may be lost: "), lost),
    }
    for name, other in told.items():
        judged = judged.withColumn(name, F.when(untold, other).otherwise(F.col(name)))
    for name in ("rule", "expected_at"):
        judged = judged.withColumn(name, F.when(~untold, F.col(name)))
    return judged.withColumn("removed", F.when(~may_not_be_it, F.col("removed"))).withColumn(
        "commit_ms", F.when(~may_not_be_it, F.col("commit_ms"))
    )


def _with_expiry(removed: DataFrame, log: OffsetLog, retention: Retention) -> DataFrame:
    """Add what `with_expiry` says of what was removed, as it was right before."""
    said = (
        with_transactions(removed, log.pending)
        .withColumn("commit_ms", F.col("removed.commit_ms"))
        .withColumn("expire_ms", F.col("removed.expire_ms"))
        .join(F.broadcast(modern_since(log.decoded)), how="cross")
    )
    # In version 1 with an expire time, and written before anything newer: a release before 2.1.
    is_before = (
        F.lit(log.before is not None)
        & (F.col("removed.value_version") == 1)
        & (F.col("expire_ms") != -1)
        & (F.coalesce("not_before_ms", F.lit(0)) < F.col("modern_ms"))
    )
    said = said.withColumn("is_before", F.coalesce(is_before, F.lit(col=False)))
    placed = with_retention(said, retention, F.col("not_after_ms"))
    return with_expiry(placed, log.era, log.before).localCheckpoint()


def _due_by_setting() -> Column:
    """Return whether an offset was due by the retention given; null where none was."""
    is_assumed = F.col("retention_source") == ASSUMED
    return F.when(~is_assumed, _at_some_time())


def _surely_due(log: OffsetLog) -> Column:
    """Return whether it was due under any retention; null where that depends on it.

    What the release keeps was not due, and what carries its own expire time says so itself. -1
    taken as a time is always over: the cleanup that does so takes all such offsets.
    """
    blocked = F.lit(log.era.pending_transaction_keeps) & F.col("blocking_producers").isNotNull()
    by_record = F.col("retention_source") == RECORD
    idle = F.col("not_after_ms") - F.col("base_ms")
    is_guess = F.col("retention_source") == ASSUMED
    return (
        F.when(F.col("is_unparsed"), F.lit(col=True))
        .when(F.col("is_kept") | blocked, F.lit(col=False))
        .when(by_record, _at_some_time())
        .when(idle < SHORTEST_RETENTION_MS, F.lit(col=False))
        .when(is_guess & _at_some_time(), F.lit(col=True))
    )


def _at_some_time() -> Column:
    """Return whether it was due between the times within which it was removed; null if unknown."""
    earliest, latest = F.col("not_before_ms"), F.col("not_after_ms")
    return F.when(earliest.isNotNull() & is_due(earliest), F.lit(col=True)).when(
        latest.isNotNull() & ~is_due(latest), F.lit(col=False)
    )
