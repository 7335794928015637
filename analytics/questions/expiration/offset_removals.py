"""The audit of the past: every offset tombstone, its cause and a verdict: `offset_removals`.

A cause rests on one act about one group: what was removed is judged some whole groups at a time.
What other groups say of it are small sums, which come first (`Removing`).
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import polars as pl

from analytics.questions.expiration.offset_expiration import as_time, is_due, with_expiry
from analytics.questions.expiration.offset_log import (
    GroupRecords,
    OffsetLog,
    modern_since,
    with_transactions,
)
from analytics.questions.expiration.removal_verdicts import (
    CANNOT_TELL,
    LATE,
    is_unparsed_expire_time,
    retention_may_differ,
    with_verdict,
)
from analytics.questions.expiration.retention_settings import (
    ASSUMED,
    RECORD,
    Retention,
    with_retention,
)
from analytics.replay.history.partition_history import STARTS
from analytics.replay.log.losses import (
    WHOLE,
    Coverage,
    lost_between,
    uncompacted_from,
    what_is_lost,
)
from analytics.replay.log.spans import TIME
from analytics.replay.offsets.commit_rows import GROUP, PLACE, TOPIC
from analytics.replay.removals.removal_causes import (
    EXPIRATION,
    LOW,
    MEDIUM,
    SHORTEST_RETENTION_MS,
    TOPIC_DELETED,
    UNKNOWN,
    swept_while_rebalancing,
    with_removal_cause,
    with_undecided_removal,
)
from analytics.replay.removals.removed_offsets import (
    purges_in_all,
    removed_offsets,
    topic_purges,
    with_topic_absence,
    with_topic_deletion,
)
from schemas import CONSUMER_OFFSETS
from schemas.expiration_rules import AuditRules, ExpirationRules

if TYPE_CHECKING:
    from analytics.replay.log.rules import ReplayRules
    from analytics.replay.metadata_log import Beginning

# Since when the coordinator had been at work that removed an offset, and whether it still is.
#
# A coordinator begins its cleanups anew whenever it loads its partition, and a broker reads its
# settings only when it starts: the two things that explain a removal at another time than expected.

EPOCH: Final = ("coordinator_partition", "leader_epoch")
_BEGINNING: Final = (*EPOCH, "is_restart", "started_at")
_PLACE: Final = (*EPOCH, "at")


def first_times(records: GroupRecords, starts: pl.DataFrame) -> pl.DataFrame:
    """Return the first records of some groups since each beginning of a coordinator.

    Args:
        records: Up to the instant.
        starts: `STARTS`; no rows where there is no metadata log.

    Returns:
        `_BEGINNING`, null but for `EPOCH` where the metadata log has none of a leader epoch, and
        `first_at` (timestamp).
    """
    groups = records.decoded["group_metadata"].select(
        pl.col("partition").alias(EPOCH[0]), EPOCH[1], pl.col("timestamp").cast(TIME).alias("at")
    )
    told = records.commits.select(*EPOCH, pl.col("committed_at").alias("at"))
    times = pl.concat([told, groups])
    first = times.group_by(EPOCH).agg(pl.col("at").min().alias("first_at")).drop_nulls(EPOCH)
    begun = first.join(starts.select(_BEGINNING), on=EPOCH, how="left")
    is_again = pl.col("is_restart").fill_null(value=False)
    again = begun.filter(is_again).drop("first_at")
    since = times.join(again, on=EPOCH).filter(pl.col("at") >= pl.col("started_at"))
    restarted = since.group_by(_BEGINNING).agg(pl.col("at").min().alias("first_at"))
    return pl.concat([begun.filter(~is_again).select(restarted.columns), restarted])


def first_records(times: pl.DataFrame, removed: pl.DataFrame, starts: pl.DataFrame) -> pl.DataFrame:
    """Return beginnings of coordinators that removed offsets, with their first record since.

    Args:
        times: Of `first_times`, of all groups of these partitions.
        removed: Of `removed_offsets`, from these partitions.
        starts: `STARTS`.

    Returns:
        `STARTS`, null but for `EPOCH` where the metadata log has none of a leader epoch, and
        `first_at`: the time of the first record of the epoch since that beginning.
    """
    return (
        times.join(removed.select(EPOCH).unique(), on=EPOCH, how="semi")
        .group_by(_BEGINNING)
        .agg(pl.col("first_at").min())
        .join(starts, on=_BEGINNING, how="left", nulls_equal=True)
        .select(*STARTS.names(), "first_at")
    )


def with_beginning(removed: pl.DataFrame, begun: pl.DataFrame) -> pl.DataFrame:
    """Add when the coordinator began that wrote a tombstone.

    Args:
        removed: Has `coordinator_partition`, `leader_epoch` and `at`.
        begun: Of `first_records`.

    Returns:
        The rows with `leader` (int: the broker; null where no metadata log tells), `began_at`
        (timestamp: when it was elected or started last before the tombstone; where no metadata log
        tells, the first record of the leader epoch), `ready_by` (timestamp: its first record since,
        by which it had loaded its partition), `by_restart` (boolean: it started again within the
        leader epoch), `idle_since` (timestamp: until when the leader before had been at work; null
        where that is not known) and `restarted_since` (timestamp: when the broker started again
        after the tombstone; null where it did not).
    """
    # An election before the metadata log begins was at no time that is known.
    unknown = pl.when(pl.col("leader").is_null()).then("first_at")
    known = begun.with_columns(
        pl.coalesce("started_at", unknown).alias("began_at"),
        pl.coalesce("started_at", "first_at").alias("order"),
    )
    there = removed.select(_PLACE).filter(pl.col("at").is_not_null()).unique()
    beginnings = there.join(known, on=EPOCH)
    last = (
        beginnings.filter(pl.col("order") <= pl.col("at"))
        .sort("order")
        .unique(_PLACE, keep="last", maintain_order=True)
        .select(
            *_PLACE,
            "began_at",
            pl.col("first_at").alias("ready_by"),
            pl.col("is_restart").alias("by_restart"),
            "idle_since",
        )
    )
    leaders = beginnings.group_by(_PLACE).agg(pl.col("leader").max())
    again = (
        beginnings.select(*_PLACE, "broker_starts")
        .explode("broker_starts")
        .filter(pl.col("broker_starts") > pl.col("at"))
        .group_by(_PLACE)
        .agg(pl.col("broker_starts").min().alias("restarted_since"))
    )
    for each in (leaders, last, again):
        removed = removed.join(each, on=_PLACE, how="left")
    return removed


OFFSET_DELETE_SINCE: Final = ("2.4-3.1", "3.2-3.9", "current")


@dataclass(frozen=True)
class Removed:
    """What was removed of some whole groups.

    Attributes:
        rows: Of `removed_of`.
        begun: Of `first_records`.
        modern_ms: Of `modern_since`, of all groups.
        purges: Of `topic_purges`, of all groups.
    """

    rows: pl.DataFrame
    begun: pl.DataFrame
    modern_ms: int | None
    purges: pl.DataFrame


@dataclass(frozen=True)
class Removing:
    """What the judgement of a removal takes of other groups: it does not grow with them.

    Attributes:
        begun: Of `first_times`.
        modern_ms: Of `modern_since`.
        purges: Of `topic_purges`.
    """

    begun: pl.DataFrame
    modern_ms: int | None
    purges: pl.DataFrame


@dataclass(frozen=True)
class Cluster:
    """What is known of the cluster at the instant.

    Attributes:
        topics: The state table.
        metadata: How the metadata log begins.
        present: The topics of the data directories in the dump; None where others may be there too.
        coverage: Where records are lost.
    """

    topics: pl.DataFrame
    metadata: Beginning
    present: Collection[str] | None = None
    coverage: Coverage = WHOLE


def removed_of(log: OffsetLog) -> pl.DataFrame:
    """Return what was removed of the groups of a log, as `Removed` has it."""
    rows = removed_offsets(
        log.removed_offsets, log.events, log.pending, log.groups, log.protections, log.protects
    )
    return with_transactions(rows, log.pending).drop(GROUP, TOPIC, PLACE)


def removing(
    records: GroupRecords, rows: pl.DataFrame, starts: pl.DataFrame, topics: pl.DataFrame
) -> Removing:
    """Gather what the judgement of removals takes of some groups.

    Args:
        records: Of these groups, up to the instant.
        rows: Of `removed_of`, of these groups.
        starts: `STARTS`; no rows where there is no metadata log.
        topics: The state table.
    """
    return Removing(first_times(records, starts), modern_since(records), topic_purges(rows, topics))


def together(parts: Sequence[Removing]) -> Removing:
    """Return the same of all groups, of what it is of some."""
    modern = [each.modern_ms for each in parts if each.modern_ms is not None]
    times = pl.concat([each.begun for each in parts])
    return Removing(
        times.group_by(_BEGINNING).agg(pl.col("first_at").min()),
        min(modern, default=None),
        purges_in_all([each.purges for each in parts]),
    )


def removed_with(rows: pl.DataFrame, evidence: Removing, starts: pl.DataFrame) -> Removed:
    """Return what was removed of some whole groups with what judges it.

    Args:
        rows: Of `removed_of`, of these groups.
        evidence: Of `together`, of all groups.
        starts: `STARTS`; no rows where there is no metadata log.
    """
    begun = first_records(evidence.begun, rows, starts)
    return Removed(rows, begun, evidence.modern_ms, evidence.purges)


def offset_removals(
    removed: Removed,
    cluster: Cluster,
    retention: Retention,
    as_of_ms: int,
    *,
    rules: tuple[ReplayRules, ExpirationRules, ExpirationRules | None],
    audit: AuditRules,
) -> pl.DataFrame:
    """Return the rows of the table `offset_removals`, and more columns.

    Args:
        removed: Of whole groups.
        cluster: At the instant.
        retention: Of the coordinators.
        as_of_ms: The instant, in epoch milliseconds: no record is later.
        rules: How the release replays, by which offsets expire, and by which those of what a
            release before an upgrade wrote.
        audit: How much later than one check interval is on time.
    """
    replay, era, before = rules
    coverage = cluster.coverage
    rows = removed.rows.with_columns(pl.col("not_after_ms").fill_null(as_of_ms))
    rows = with_topic_deletion(rows, cluster.topics, removed.purges)
    rows = with_topic_absence(rows, cluster.topics, cluster.metadata, cluster.present)
    told = _with_expiry(rows, removed.modern_ms, era, before, retention)
    told = with_undecided_removal(told, coverage).with_columns(
        is_unparsed_expire_time(era).alias("is_unparsed")
    )
    told = with_beginning(told, removed.begun).with_columns(
        _due_by_setting().alias("is_due"),
        _surely_due(era).alias("is_surely_due"),
        retention_may_differ().alias("retention_may_differ"),
        *swept_while_rebalancing(
            pl.col("retention_ms"), rebalance_keeps=era.rebalance_keeps or era.per_offset
        ),
    )
    judged = with_removal_cause(
        told,
        offsets_can_be_deleted=era.name in OFFSET_DELETE_SINCE,
        group_always_ends=replay.groups_end_by_tombstones,
        streams_groups_keep=replay.streams_readiness_is_recorded,
    )
    # A deletion by hand of such offsets looks the same.
    may_be_bug = pl.col("is_unparsed") & (pl.col("cause") == EXPIRATION) & ~_at_some_time()
    judged = judged.with_columns(
        pl.when(may_be_bug).then(pl.lit(MEDIUM)).otherwise("confidence").alias("confidence")
    )
    judged = with_verdict(judged, audit, rebalance_keeps=era.rebalance_keeps)
    if era.heeds:
        judged = _with_compacted(judged, coverage)
    is_decided = pl.col("undecided").is_null()
    last, commit = pl.col("removed_committed_offset"), as_time(pl.col("commit_ms"))
    return _with_losses(judged, coverage).with_columns(
        pl.when(is_decided).then(last).alias("last_offset"),
        pl.when(is_decided).then(commit).alias("last_commit_timestamp"),
        # A commit of a transaction counts from its marker on.
        pl.when(is_decided & commit.is_not_null())
        .then("removed_at")
        .alias("last_effective_timestamp"),
        pl.col("at").alias("removed_at"),
        pl.col("position").alias("record_offset"),
    )


def _with_compacted(judged: pl.DataFrame, coverage: Coverage) -> pl.DataFrame:
    """Call nothing late where compaction may have taken the records of what kept it until later.

    The commit that a tombstone removed is the last one of its key: that is there. Who subscribed to
    its topic after it, and until when, is told by records that others have replaced.
    """
    is_taken = pl.col("removed_position") < uncompacted_from(coverage)
    is_late = ((pl.col("verdict") == LATE) & is_taken).fill_null(value=False)
    why = "it went later than one cleanup after it was due by what is left; compaction may have "
    why += "taken the records of what kept it until later"
    changed = {"verdict": pl.lit(CANNOT_TELL), "reason": pl.lit(why)}
    return judged.with_columns(
        *(
            pl.when(is_late).then(said).otherwise(name).alias(name)
            for name, said in changed.items()
        ),
        pl.when(~is_late).then("expected_at").alias("expected_at"),
    )


def _with_losses(judged: pl.DataFrame, coverage: Coverage) -> pl.DataFrame:
    """Judge nothing where a lost record may have changed the offset or its group before it went."""
    if not coverage.losses_of_topic(CONSUMER_OFFSETS):
        return judged
    at = pl.col("position")
    commit, group = pl.col("removed_position").fill_null(-1), pl.col("group_from").fill_null(-1)
    # What removed it may itself be on a line that did not survive.
    lost = lost_between(coverage, pl.min_horizontal(commit, group), at + 1)
    judged = judged.with_columns(
        (lost.is_not_null() & (pl.col("cause") != TOPIC_DELETED)).alias("untold"),
        lost_between(coverage, commit, at).is_not_null().alias("may_not_be_it"),
    )
    what = pl.concat_str(pl.lit("what was there before it may be lost: "), what_is_lost(coverage))
    told = {
        "cause": pl.lit(UNKNOWN),
        "confidence": pl.lit(LOW),
        "verdict": pl.lit(CANNOT_TELL),
        "reason": what,
    }
    untold = pl.col("untold")
    unsure = ("removed_committed_offset", "commit_ms", "removed_at")
    return judged.with_columns(
        *(pl.when(untold).then(other).otherwise(name).alias(name) for name, other in told.items()),
        *(pl.when(~untold).then(name).alias(name) for name in ("rule", "expected_at")),
        *(pl.when(~pl.col("may_not_be_it")).then(name).alias(name) for name in unsure),
    )


def _with_expiry(
    removed: pl.DataFrame,
    modern_ms: int | None,
    era: ExpirationRules,
    before: ExpirationRules | None,
    retention: Retention,
) -> pl.DataFrame:
    """Add what `with_expiry` says of what was removed, as it was right before."""
    # In version 1 with an expire time, and written before anything newer: a release before 2.1.
    is_before = (
        (pl.col("removed_value_version") == 1)
        & (pl.col("removed_expire_ms") != -1)
        & (pl.col("not_before_ms").fill_null(0) < pl.lit(modern_ms, pl.Int64))
    )
    said = removed.with_columns(
        pl.col("removed_commit_ms").alias("commit_ms"),
        pl.col("removed_expire_ms").alias("expire_ms"),
        (is_before.fill_null(value=False) & (before is not None)).alias("is_before"),
    )
    told = with_expiry(with_retention(said, retention, pl.col("not_after_ms")), era, before)
    return told.with_columns(pl.col("rule").cast(pl.String))


def _due_by_setting() -> pl.Expr:
    """Return whether an offset was due by the retention given; null where none was."""
    is_assumed = pl.col("retention_source") == ASSUMED
    return pl.when(~is_assumed).then(_at_some_time())


def _surely_due(era: ExpirationRules) -> pl.Expr:
    """Return whether it was due under any retention; null where that depends on it.

    What the release keeps was not due, and what carries its own expire time says so itself. -1
    taken as a time is always over: the cleanup that does so takes all such offsets.
    """
    blocked = pl.col("blocking_producers").is_not_null() & era.pending_transaction_keeps
    idle = pl.col("not_after_ms") - pl.col("base_ms")
    is_guess = pl.col("retention_source") == ASSUMED
    yes, no = pl.lit(value=True), pl.lit(value=False)
    return (
        pl.when("is_unparsed")
        .then(yes)
        .when(pl.col("is_kept") | blocked)
        .then(no)
        .when(pl.col("retention_source") == RECORD)
        .then(_at_some_time())
        .when(idle < SHORTEST_RETENTION_MS)
        .then(no)
        .when(is_guess & _at_some_time())
        .then(yes)
    )


def _at_some_time() -> pl.Expr:
    """Return whether it was due between the times within which it was removed; null if unknown."""
    earliest, latest = pl.col("not_before_ms"), pl.col("not_after_ms")
    return (
        pl.when(earliest.is_not_null() & is_due(earliest))
        .then(pl.lit(value=True))
        .when(latest.is_not_null() & ~is_due(latest))
        .then(pl.lit(value=False))
    )
