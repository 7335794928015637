"""Why a committed offset was deleted: the one rule, and what the dump alone shows of it."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import polars as pl

from analytics.replay.groups.group_records import GROUP_KEY, KINDS
from analytics.replay.log.log_times import clocks_of_topic, disputed
from analytics.replay.log.losses import Coverage
from analytics.replay.offsets.commit_rows import MAY_HAVE_BEEN_ABORTED, is_undecided
from analytics.replay.offsets.effective_commits import EVENTS, offset_events, pending_spans
from analytics.replay.removals.group_spans import (
    SUBSCRIBED,
    UNPARSEABLE,
    group_spans,
    protection_spans,
)
from analytics.replay.removals.removed_offsets import (
    ACT,
    EMPTY,
    SIMPLE,
    STREAMS_GROUP,
    UNSUBSCRIBED,
    removed_of_groups,
    with_topic_absence,
    with_topic_deletion,
)
from analytics.replay.removals.time_bounds import said_times, timeless_partitions, with_bounds
from schemas import CLUSTER_METADATA, CONSUMER_OFFSETS

if TYPE_CHECKING:
    from analytics.replay.log.rules import ReplayRules
    from analytics.replay.metadata_log import Beginning

# Why a committed offset was deleted: the one rule that history and the audit of expiry share.
#
# Five writers leave tombstones of offsets: the cleanup, DeleteGroups, OffsetDelete, the deletion
# of a topic (``OffsetMetadataManager``), and nobody else. The cleanup takes only what is due, so
# an act that took something else was not the cleanup. Of the acts that were not, one that ends
# the group is DeleteGroups, one right after the deletion of the topic is that.
#
# Takes and gives frames of polars, of the tombstones of all partitions.

EXPIRATION, GROUP_DELETED, OFFSETS_DELETED, TOPIC_DELETED, UNKNOWN = (
    "expiration",
    "group_deleted",
    "offsets_deleted",
    "topic_deleted",
    "unknown",
)
HIGH, MEDIUM, LOW = "high", "medium", "low"

CLOCK_SET_BACK: Final = "a clock was set back: how long it was kept cannot be told"
NOT_BELIEVED: Final = "the time of its record is not believed: how long it was kept cannot be told"
_UNMEASURED: Final = (CLOCK_SET_BACK, NOT_BELIEVED)
"""Times tell nothing: neither whether it was due, nor what came first."""

SHORTEST_RETENTION_MS: Final = 60_000
"""`offsets.retention.minutes` is at least one."""

DEFAULT_RETENTION_MS: Final = 604_800_000
"""Of `offsets.retention.minutes` since 2.0: seven days."""

TOPIC_DELETION_WITHIN: Final = pl.duration(seconds=30)
"""How long after the deletion of a topic the coordinators forget its offsets: they are told at
once, and write in less than a second where they are not overloaded."""


def with_removal_cause(
    removed: pl.DataFrame,
    *,
    offsets_can_be_deleted: bool = True,
    group_always_ends: bool = True,
    streams_groups_keep: bool = True,
) -> pl.DataFrame:
    """Add `cause` and `confidence` to removed offsets.

    Args:
        removed: Rows of `removed_offsets` with what `with_topic_deletion` and
            `with_topic_absence` add,
            `is_surely_due` (boolean: it was due, or was not, under any retention there can be; null
            where that depends on the retention), `is_due` (boolean: by the retention that is known;
            null where none is), `retention_may_differ` (boolean: whether another retention than the
            known one may have been in force), and what `swept_while_rebalancing` and
            `with_undecided_removal` add.
        offsets_can_be_deleted: Whether the release knows OffsetDelete (2.4, KIP-496).
        group_always_ends: Whether the deletion of any group leaves a tombstone of the group (4.0);
            before, a group that never had a generation leaves none.
        streams_groups_keep: Whether a streams group with members surely keeps the offsets of its
            topics; not in 4.1 (``StreamsGroup.isSubscribedToTopic``), where it does once its
            topology is configured: after a load of its partition with the next heartbeat, which
            leaves no record.

    Returns:
        The rows with `cause` (expiration, group_deleted, offsets_deleted, topic_deleted, unknown),
        `confidence` (high, medium, low) and `may_not_be_kept` (boolean: whether the group kept the
        offset is not known, then neither of the due ones is). A cause rests on what one act took of
        one group, never on what other groups lost at about that time: groups are deleted one right
        after the other, too, and who asks for one group alone gets the same answer.
    """
    deletion = _deletion(
        offsets_can_be_deleted=offsets_can_be_deleted, group_always_ends=group_always_ends
    )
    undecided = _cause(UNKNOWN, LOW)
    told = pl.col("is_known") | pl.col("removed_pending") | pl.col("repeats")
    # Whether it was due rests on the commit; what its topic's deletion took does not.
    is_unmeasured = pl.col("undecided").is_in(_UNMEASURED).fill_null(value=False)
    by_topic = pl.col("undecided").is_not_null() & ~is_unmeasured & pl.col("topic_gone")
    # Not even of what the cleanup would have left alone.
    perhaps_by_topic = is_unmeasured & pl.col("topic_was_deleted")
    judged = (
        pl.when(by_topic)
        .then(_cause(TOPIC_DELETED, MEDIUM))
        .when(~told | ~pl.col("some_known") | perhaps_by_topic)
        .then(undecided)
        .when(pl.col("topic_gone") & ~pl.col("row_due"))
        .then(_cause(TOPIC_DELETED, HIGH))
        .when("topic_gone")
        .then(_cause(TOPIC_DELETED, MEDIUM))
        .when("some_not_due")
        .then(deletion)
        .when(pl.col("sweep_likely") & pl.col("some_absence_unknown"))
        .then(_cause(EXPIRATION, LOW))
        .when("sweep_likely")
        .then(_cause(EXPIRATION, MEDIUM))
        .when("all_due")
        .then(_cause(EXPIRATION, HIGH))
        .when(pl.col("at").is_null())
        .then(undecided)
        .when(pl.col("some_kept_by_setting") & ~pl.col("retention_may_differ"))
        .then(deletion)
        .when("some_kept_by_setting")
        .then(_weaker(deletion))
        # Without a retention a cleanup looks the same as a deletion.
        .otherwise(undecided)
    )
    return (
        _with_act_facts(_with_doubt(removed, streams_groups_keep=streams_groups_keep))
        .with_columns(judged.alias("judged"))
        .drop(_FACTS)
        .unnest("judged")
    )


def swept_while_rebalancing(
    retention_ms: pl.Expr | int, *, rebalance_keeps: bool
) -> tuple[pl.Expr, pl.Expr]:
    """Return `may_be_swept` and `is_swept`, of removed offsets that the group's records keep.

    From 2.4 to 3.1 the cleanup did not ask whether a group is Stable (KAFKA-13636): of one that
    rebalanced it took what its members of that moment did not subscribe to, of which there is no
    record. A generation that left none shows such a rebalance.

    Args:
        retention_ms: How long offsets are kept, as far as that is known.
        rebalance_keeps: Whether the release keeps all offsets of a group that rebalances.
    """
    idle = pl.col("not_after_ms") - pl.col("removed_commit_ms")
    is_kept = pl.col("kept_by").is_in([SUBSCRIBED, UNPARSEABLE])
    is_kept &= pl.col("condition") == UNSUBSCRIBED
    may_be = is_kept & (idle >= SHORTEST_RETENTION_MS) & (not rebalance_keeps)
    is_swept = may_be & pl.col("skips_generation") & (idle >= retention_ms)
    return (
        may_be.fill_null(value=False).alias("may_be_swept"),
        is_swept.fill_null(value=False).alias("is_swept"),
    )


def with_undecided_removal(removed: pl.DataFrame, coverage: Coverage) -> pl.DataFrame:
    """Add `undecided` to removed offsets: why what a tombstone removed is not known; null if it is.

    Of archived rows no producer id and no marker tells whether a commit took effect; one that names
    its topic's id did not come in a transaction. Where a clock was set back, or a time is not
    believed, nothing tells whether the offset was due, nor which came first, the tombstone or the
    deletion of its topic.

    Args:
        removed: With what `with_topic_deletion` adds.
        coverage: What the dump holds.
    """
    is_commit = pl.col("removed_position").is_not_null()
    last = is_undecided(coverage, pl.col("removed_topic_id"), is_commit=is_commit)
    return removed.with_columns(
        pl.when(last)
        .then(pl.lit(MAY_HAVE_BEEN_ABORTED))
        .when(_is_unmeasured(coverage))
        .then(pl.lit(CLOCK_SET_BACK))
        .when(_is_not_believed(coverage))
        .then(pl.lit(NOT_BELIEVED))
        .alias("undecided")
    )


def _is_unmeasured(coverage: Coverage) -> pl.Expr:
    """Return whether a tombstone was written after a clock was set, or its topic's was."""
    clocks = clocks_of_topic(coverage.clocks, CONSUMER_OFFSETS)
    partitions = {number: clock.first_doubt for number, clock in clocks.items()}
    home = pl.col("coordinator_partition").cast(pl.Int64)
    begins = home.replace_strict(partitions, default=None, return_dtype=pl.Int64)
    is_behind = (pl.col("position") >= begins).fill_null(value=False)
    logs = {topic for topic, _ in coverage.clocks}
    is_set = CLUSTER_METADATA in logs or bool(disputed(coverage.frames, CLUSTER_METADATA))
    return is_behind | (pl.col("topic_was_deleted") & is_set)


def _is_not_believed(coverage: Coverage) -> pl.Expr:
    if coverage.believed_until is None:
        return pl.lit(value=False)
    return (pl.col("at") > coverage.believed_until).fill_null(value=False)


_FACTS: Final = (
    "is_known",
    "row_due",
    "topic_gone",
    "some_not_due",
    "some_kept_by_setting",
    "all_due",
    "some_known",
    "all_absent",
    "some_absence_unknown",
    "is_of_one_topic",
    "sweep_likely",
)


def _with_doubt(removed: pl.DataFrame, *, streams_groups_keep: bool) -> pl.DataFrame:
    doubt = pl.lit(value=False)
    if not streams_groups_keep:
        doubt = (pl.col("condition") == STREAMS_GROUP) & pl.col("kept_by").is_not_null()
    return removed.with_columns(doubt.alias("may_not_be_kept")).with_columns(
        pl.when(~pl.col("may_not_be_kept") & ~pl.col("may_be_swept")).then(name).alias(name)
        for name in ("is_due", "is_surely_due")
    )


def _with_act_facts(removed: pl.DataFrame) -> pl.DataFrame:
    """Add what the rows of an act say together."""
    gone = pl.col("at") <= pl.col("topic_deleted_at") + TOPIC_DELETION_WITHIN
    is_known = pl.col("removed_position").is_not_null() & pl.col("undecided").is_null()
    due = pl.coalesce("is_surely_due", "is_due").fill_null(value=False)
    facts = removed.with_columns(
        is_known.alias("is_known"),
        (is_known & due).alias("row_due"),
        gone.fill_null(value=False).alias("topic_gone"),
    )
    known = pl.col("is_known")
    # What was pending the cleanup would have left alone.
    not_due = (known & ~pl.col("is_surely_due")) | pl.col("removed_pending")
    return facts.with_columns(
        _any(not_due).alias("some_not_due"),
        _any(known & ~pl.col("is_due")).alias("some_kept_by_setting"),
        (_any(known) & ~_any(known & ~pl.col("row_due"))).alias("all_due"),
        _any(known | pl.col("removed_pending")).alias("some_known"),
        (_any(pl.col("is_swept")) & ~_any(~pl.col("is_swept"))).alias("sweep_likely"),
        (~_any(~pl.col("topic_absent").fill_null(value=False))).alias("all_absent"),
        _any(pl.col("topic_absent").is_null()).alias("some_absence_unknown"),
        (pl.col("topic").n_unique().over(list(ACT)) == 1).alias("is_of_one_topic"),
    )


def _deletion(*, offsets_can_be_deleted: bool, group_always_ends: bool) -> pl.Expr:
    """Return which deletion an act was that the cleanup was not."""
    nothing_left = pl.col("offsets_left") == 0
    is_whole = pl.col("condition").is_in([SIMPLE, EMPTY]) & nothing_left
    # Where nothing says which topics there are, the act may as well be the deletion of one.
    unknown = pl.col("some_absence_unknown")

    # A topic that is gone in the end may have gone later than its offsets.
    may_be_topic = pl.col("all_absent") | (unknown & pl.col("is_of_one_topic"))

    def chosen_as(cause: str) -> pl.Expr:
        return pl.when(unknown).then(_cause(cause, MEDIUM)).otherwise(_cause(cause, HIGH))

    cases = []
    if not offsets_can_be_deleted:
        # The deletion of a topic ends a group that has nothing else, as its own deletion does.
        is_end = pl.col("group_ended") | is_whole
        cases = [
            (may_be_topic & is_end, _cause(UNKNOWN, LOW)),
            (pl.col("all_absent"), _cause(TOPIC_DELETED, MEDIUM)),
        ]
    ended = (pl.col("group_ended"), chosen_as(GROUP_DELETED))
    if group_always_ends:
        cases.append(ended)
    if offsets_can_be_deleted:
        cases.append((may_be_topic, _cause(UNKNOWN, LOW)))
    if not group_always_ends:
        cases += [ended, (is_whole, _cause(GROUP_DELETED, MEDIUM))]
    rest = chosen_as(OFFSETS_DELETED) if offsets_can_be_deleted else _cause(TOPIC_DELETED, MEDIUM)
    for is_case, said in reversed(cases):
        rest = pl.when(is_case).then(said).otherwise(rest)
    return rest


def _cause(cause: str, confidence: str) -> pl.Expr:
    return pl.struct(pl.lit(cause).alias("cause"), pl.lit(confidence).alias("confidence"))


def _weaker(cause: pl.Expr) -> pl.Expr:
    return pl.struct(cause.struct.field("cause"), pl.lit(LOW).alias("confidence"))


def _any(condition: pl.Expr) -> pl.Expr:
    return condition.fill_null(value=False).any().over(list(ACT))


# The cause of every offset tombstone, as far as the dump alone shows it.
#
# Takes and gives frames of polars, of whole groups.

_RESULT_COLUMNS = ("position", "at", "removed_topic_id", "removed_position", "removed_at")
REMOVED: Final = pl.Schema(
    {
        **{name: EVENTS[name] for name in (*GROUP_KEY, "topic", "partition", *_RESULT_COLUMNS)},
        **{name: EVENTS[name] for name in ("removed_commit_ms", "removed_expire_ms")},
        "act": pl.Int64(),
        "repeats": pl.Boolean(),
        "offsets_left": pl.Int64(),
        "condition": pl.String(),
        "skips_generation": pl.Boolean(),
        "state_ms": pl.Int64(),
        "kept_by": pl.String(),
        "removed_pending": pl.Boolean(),
        "group_ended": pl.Boolean(),
    }
)
"""Columns of `removed_of_groups` that causes are told from."""
CAUSES: Final = pl.Schema(
    {
        **{name: EVENTS[name] for name in GROUP_KEY},
        "record_offset": pl.Int64(),
        "cause": pl.String(),
        "confidence": pl.String(),
    }
)


@dataclass(frozen=True)
class Around:
    """What the judgement of removals takes of records of other groups.

    Attributes:
        bounds: Of `time_bounds`, of the groups that are judged at least.
        purges: Of `purges_in_all`, of all groups.
    """

    bounds: pl.DataFrame
    purges: pl.DataFrame


def removed_and_times(
    ended: pl.DataFrame,
    decoded: Mapping[str, pl.DataFrame],
    rules: ReplayRules,
    timeless: Collection[int] | None = None,
) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Return `REMOVED` of some groups, and what bounds the times of tombstones without one.

    Args:
        ended: Of `ended_commits`.
        decoded: The other decoded tables of these groups, cut at the same instant.
        rules: Of the release.
        timeless: The partitions in which some tombstone carries no time; None: the groups are all
            there are.
    """
    events = offset_events(ended, rules)
    records = _records_of(decoded, ended.filter("is_tombstone")["group_id"].unique())
    spans = group_spans(records)
    gone = removed_of_groups(
        events, pending_spans(ended, rules), spans, protection_spans(records, spans)
    )
    partitions = timeless_partitions(gone) if timeless is None else sorted(timeless)
    return gone.select(REMOVED.names()), said_times(events, partitions)


def _records_of(decoded: Mapping[str, pl.DataFrame], names: pl.Series) -> dict[str, pl.DataFrame]:
    """Return the records of groups of some names, by table."""
    found = {}
    for table, kind in KINDS.items():
        rows = decoded[table]
        name = pl.col("key").struct.field(kind.group_field)
        found[table] = rows.filter(name.is_in(names.implode())) if rows.height else rows
    return found


def causes_in_history(
    removed: pl.DataFrame,
    around: Around,
    topics: pl.DataFrame,
    log: Beginning,
    rules: ReplayRules,
    *,
    present: Collection[str] | None,
    coverage: Coverage,
) -> pl.DataFrame:
    """Return the cause of every tombstone: `CAUSES`.

    Args:
        removed: `REMOVED` of whole groups.
        around: What other groups tell of them.
        topics: The state table at that instant.
        log: How the metadata log begins.
        rules: Of the release.
        present: The topics of the data directories in the dump; None where others may be there too.
        coverage: What the dump holds.
    """
    bounded = with_bounds(removed, around.bounds)
    rows = with_topic_deletion(bounded, topics, around.purges)
    rows = with_undecided_removal(with_topic_absence(rows, topics, log, present), coverage)
    judged = with_removal_cause(
        rows.with_columns(
            _surely_due().alias("is_surely_due"),
            pl.lit(None, pl.Boolean).alias("is_due"),
            pl.lit(value=True).alias("retention_may_differ"),
            *swept_while_rebalancing(
                DEFAULT_RETENTION_MS, rebalance_keeps=rules.rebalancing_groups_keep_all
            ),
        ),
        group_always_ends=rules.groups_end_by_tombstones,
        streams_groups_keep=rules.streams_readiness_is_recorded,
    )
    return judged.with_columns(pl.col("position").alias("record_offset")).select(CAUSES.names())


def _surely_due() -> pl.Expr:
    """Return whether a removed offset was due whatever the retention was; null where that matters.

    Under a retention of less than the default of seven days the offset may have been due earlier,
    under none before a minute was over.
    """
    state = pl.when(pl.col("condition") == EMPTY).then("state_ms")
    base = pl.coalesce(state, "removed_commit_ms")
    earliest, latest = pl.col("not_before_ms"), pl.col("not_after_ms")
    expire = pl.col("removed_expire_ms")
    is_late = pl.when(earliest >= expire).then(pl.lit(value=True))
    by_itself = is_late.when(latest < expire).then(pl.lit(value=False))
    return (
        pl.when(pl.col("kept_by").is_not_null())
        .then(pl.lit(value=False))
        .when(expire != -1)
        .then(by_itself)
        .when(latest - base < SHORTEST_RETENTION_MS)
        .then(pl.lit(value=False))
        .when(earliest - base >= DEFAULT_RETENTION_MS)
        .then(pl.lit(value=True))
    )
