"""The table `share_backlog`: what is left to deliver of each share partition, what holds it up."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

import polars as pl

from analytics.contracts import contract_frame, instant
from analytics.questions.share.faults import faults_in_order, state_faults, stuck_phases
from analytics.questions.share.group_pictures import parted_by_clock
from analytics.questions.share.held_up import STABLE_ENDS, current_records, stalls, with_isolation
from analytics.questions.share.settings import ALWAYS, ASSUMED, DELIVERY_LIMIT, RECORD_LOCKS
from analytics.questions.share.share_log import HOME, KEY, counted, first_covers, size_of
from analytics.questions.share.state_topic import StateCoverage, with_absence
from analytics.questions.share.status import (
    CANNOT_TELL,
    GROUPS_WENT_BACK,
    WENT_BACK,
    with_status,
)
from analytics.questions.share.window import (
    NOT_STORED,
    STATE_NAMES,
    delivery_counts,
    is_done,
    state_name,
    stored_ranges,
    windows,
    with_first_starts,
)
from analytics.replay.log.losses import with_marks_of
from analytics.replay.share_fold import ACKNOWLEDGED, ARCHIVED, ARCHIVING, AVAILABLE

if TYPE_CHECKING:
    from datetime import datetime

    from analytics.questions.share.settings import ShareSettings
    from analytics.questions.share.share_log import ShareLog
    from analytics.replay.log.log_times import LogClock
    from analytics.replayed.end_offsets import EndOffsetSamples
    from schemas.share_rules import ShareRules

# The table `share_archived_ranges`: what share groups have given up or rejected, and when.
#
# A record is archived when a member rejects it, when there is none at its offset (a transaction's
# marker, a compacted record: clients acknowledge it as a gap), and when it would be available
# again after its last delivery (``InFlightState.tryUpdateState``). No record says which. But what
# is archived after fewer deliveries than the limit was not given up; how often that may be shows
# in the log, too: what is available after a delivery has another one left.

REJECTED: Final = "rejected_or_gap"
AT_LIMIT: Final = "at_limit"
LEAST_LIMIT: Final = 2
"""What brokers take for the limit at the least (``ShareGroupConfig``)."""

_LIMIT: Final = "delivery_count_limit"


def archived_ranges(rows: pl.DataFrame, log: ShareLog) -> pl.DataFrame:
    """Return the ranges that were archived since the state was initialised, as far as it is told.

    Args:
        rows: The table `share_backlog`.
        log: The records up to the instant.

    Returns:
        The table `share_archived_ranges` without marks, in order of its key.
    """
    names = ("topic", "next_offset", _LIMIT, f"{_LIMIT}_source", f"{_LIMIT}_since")
    shares = log.shares.with_columns(pl.col("partition").cast(rows.schema["partition"]))
    of_shares = shares.join(rows.select(*KEY, *names), KEY, "inner")
    current = current_records(log).join(of_shares.select("share"), "share", "semi")
    archived = log.ranges.filter(pl.col("state") == ARCHIVED).join(
        current.select("record", "share"), "record", "inner", maintain_order="left"
    )
    found = first_covers(archived, "share", ("record", "count"))
    begun = ("snapshot_epoch", "state_epoch")
    found = log.of_records(found, "offset", "at", "is_first", *begun).join(
        of_shares, "share", "inner", maintain_order="left"
    )
    # What a record stores was not so before where it is not the first one there is.
    is_told = ~pl.col("is_first") | ((pl.col(begun[0]) == 0) & (pl.col(begun[1]) >= 0))
    found = found.with_columns(is_told=is_told).join(
        _seen_limits(of_shares, log), "group_id", "left", maintain_order="left"
    )
    return found.select(
        *("group_id", "topic_id", "topic", "partition"),
        pl.col("first").alias("first_offset"),
        pl.col("last").alias("last_offset"),
        pl.col("count").cast(pl.Int32).alias("delivery_count"),
        instant(pl.col("at")).alias("archived_at"),
        archived_bound=pl.when("is_told").then(pl.lit("exact")).otherwise(pl.lit("at_latest")),
        cause=_cause(),
        is_passed=pl.col("last") < pl.col("next_offset").fill_null(-1),
        **{HOME: pl.col(HOME).cast(pl.Int32)},
        record_offset="offset",
    ).sort("group_id", "topic_id", "partition", "first_offset", maintain_order=True)


def _cause() -> pl.Expr:
    """Return why a range was archived, as far as the limit of deliveries tells it."""
    count, since = pl.col("count").cast(pl.Int64), pl.col(f"{_LIMIT}_since")
    # What held before a limit was set, nothing tells.
    was_set = ((pl.col("at") >= since) & pl.col("is_told")).fill_null(value=False)
    is_known = (pl.col(f"{_LIMIT}_source") != ASSUMED) & (was_set | (since == ALWAYS))
    is_below = (count < pl.col("at_least")) | (is_known & (count < pl.col(_LIMIT)))
    return (
        pl.when(is_below)
        .then(pl.lit(REJECTED))
        .when(is_known)
        .then(pl.lit(AT_LIMIT))
        .otherwise(pl.lit(CANNOT_TELL))
    )


def _seen_limits(of_shares: pl.DataFrame, log: ShareLog) -> pl.DataFrame:
    """Return by `group_id` what its limit is at the least, as far as the log shows: `at_least`."""
    free = log.of_records(log.ranges.filter(pl.col("state") == AVAILABLE), "share")
    most = free.group_by("share").agg(pl.col("count").cast(pl.Int64).max() + 1)
    of_groups = of_shares.select("share", "group_id").join(most, "share", "left")
    least = pl.max_horizontal(pl.col("count").max(), LEAST_LIMIT)
    return of_groups.group_by("group_id").agg(least.alias("at_least"))


NO_END: Final = "where the log ends at that instant is not known"
NO_START: Final = "no start offset yet"
NOT_COUNTED: Final = "the delivery complete count was not stored"
GONE: Final = "the topic was deleted"
BEYOND: Final = (
    "the state reaches beyond the log's end: nothing below its start offset is delivered"
)
WHOLE: Final = StateCoverage()
_GROUP = ("group_id", "topic_id", "partition")


@dataclass(frozen=True)
class ShareTables:
    """State tables at the instant; each has the columns of its contract.

    Attributes:
        shares: `share_partitions`; an id stands for a topic without a name.
        batches: `share_batches`.
        groups: `groups`.
        assignments: `assignments`.
        phases: Of `phases`.
        transactions: Of `open_transactions`; None where the dump has no transaction log.
        stable: `STABLE_ENDS`, of logs of data topics in the dump.
    """

    shares: pl.DataFrame
    batches: pl.DataFrame
    groups: pl.DataFrame
    assignments: pl.DataFrame
    phases: pl.DataFrame
    transactions: pl.DataFrame | None = None
    stable: pl.DataFrame = field(default_factory=STABLE_ENDS.to_frame)


@dataclass(frozen=True)
class ShareQuestion:
    """What the backlog is evaluated from.

    Attributes:
        tables: State tables at the instant.
        log: The records that made them.
        ends: `topic`, `partition`, `log_start_offset`, `log_end_offset` at the instant.
        samples: Where logs ended, and when.
        gone: Ids of topics that were deleted before the instant.
        settings: What groups go by.
        as_of: The instant.
        rules: How it is judged.
        coverage: What the dump shows of the topic that holds share state.
        clocks: By partition of that topic, where its clocks were set or wrong.
        groups_clocks: The same of `__consumer_offsets`.
    """

    tables: ShareTables
    log: ShareLog
    ends: pl.DataFrame
    samples: EndOffsetSamples
    gone: pl.Series
    settings: ShareSettings
    as_of: datetime
    rules: ShareRules
    coverage: StateCoverage = WHOLE
    clocks: Mapping[int, LogClock] = field(default_factory=dict)
    groups_clocks: Mapping[int, LogClock] = field(default_factory=dict)


@dataclass(frozen=True)
class Share:
    """What was found.

    Attributes:
        rows: The table `share_backlog`, worst status first.
        delivery_counts: The table `share_delivery_counts`.
        archived: The table `share_archived_ranges`.
        faults: The table `share_faults`.
    """

    rows: pl.DataFrame
    delivery_counts: pl.DataFrame
    archived: pl.DataFrame
    faults: pl.DataFrame


def evaluate_share(asked: ShareQuestion) -> Share:
    """Return how far share groups are behind at the instant, and what holds them up."""
    tables, log = asked.tables, asked.log
    rows = _with_ends(asked)
    ranges = stored_ranges(rows, tables.batches)
    for name, column in (
        (DELIVERY_LIMIT, "delivery_count_limit"),
        (RECORD_LOCKS, "max_record_locks"),
    ):
        rows = asked.settings.with_setting(rows, name, column)
    rows = _with_window(rows, ranges)
    rows = with_first_starts(rows, log, asked.settings, asked.coverage.gaps)
    rows = with_isolation(rows, asked.settings, tables.transactions, tables.stable)
    rows = _with_members(rows, tables.groups, tables.assignments)
    phases, undated = parted_by_clock(tables.phases, asked.groups_clocks)
    rows = _with_phases(rows, phases, "phase_since")
    rows = _with_phases(rows, undated, "undated_since")
    rows = _with_stalls(rows, stalls(rows, log, asked.samples, asked.clocks))
    rows = _with_clock(rows)
    is_beyond = (pl.col("offsets_beyond_end") > 0).fill_null(value=False)
    rows = rows.with_columns(reason=pl.coalesce("reason", pl.when(is_beyond).then(pl.lit(BEYOND))))
    rows = with_status(rows, asked.rules, asked.as_of)
    lacking = rows.select(*_GROUP, "missing")
    return Share(
        contract_frame(worst_first(rows, asked.rules), "share_backlog"),
        contract_frame(
            with_marks_of(delivery_counts(rows, ranges), lacking, _GROUP), "share_delivery_counts"
        ),
        contract_frame(
            with_marks_of(archived_ranges(rows, log), lacking, _GROUP), "share_archived_ranges"
        ),
        faults_in_order(
            pl.concat(
                [
                    state_faults(rows, log, asked.rules),
                    stuck_phases(phases, asked.rules, asked.as_of),
                ]
            )
        ),
    )


def with_share_lag(shares: pl.DataFrame, ends: pl.DataFrame) -> pl.DataFrame:
    """Add where logs start and end, and the lag that `kafka-share-groups --describe` prints.

    It is the log end - start offset - offsets beyond the start whose delivery is complete
    (KIP-1226). It is null where the end is not known, before the first start offset, and where that
    count was not stored (releases before 4.2 do not).

    Args:
        shares: Rows of `share_partitions`: `topic`, `partition`, `start_offset`,
            `delivery_complete_count`, ...
        ends: `topic`, `partition`, `log_start_offset`, `log_end_offset` at the instant.

    Returns:
        The rows with `log_start_offset`, `log_end_offset` and `lag`.
    """
    known = pl.when(pl.col("start_offset") >= 0).then("start_offset")
    behind = pl.col("log_end_offset") - known
    rows = shares.join(ends, ["topic", "partition"], "left", maintain_order="left")
    return rows.with_columns(lag=behind - pl.col("delivery_complete_count").cast(pl.Int64))


def _with_ends(asked: ShareQuestion) -> pl.DataFrame:
    """Add where logs end, and Kafka's lag, and number the rows; a topic that is gone has no log."""
    is_gone = pl.col("topic_id").is_in(asked.gone.implode()).fill_null(value=False)
    why = (
        pl.when("is_gone")
        .then(pl.lit(GONE))
        .when(pl.col("start_offset").is_null())
        .then(pl.lit(NO_START))
        .when(pl.col("log_end_offset").is_null())
        .then(pl.lit(NO_END))
        .when(pl.col("delivery_complete_count").is_null())
        .then(pl.lit(NOT_COUNTED))
    )
    shares = with_absence(asked.tables.shares, asked.coverage).with_columns(is_gone=is_gone)
    there = with_share_lag(shares.filter(~pl.col("is_gone")), asked.ends)
    gone = with_share_lag(shares.filter("is_gone"), asked.ends.clear())
    return (
        pl.concat([there, gone])
        .sort(_GROUP)
        .with_columns(reason=pl.coalesce("fault", why))
        .drop("is_gone")
        .with_row_index("row")
        .with_columns(pl.col("row").cast(pl.Int64))
    )


def _with_window(rows: pl.DataFrame, ranges: pl.DataFrame) -> pl.DataFrame:
    """Add what the window holds; null where there is no state."""
    found = windows(rows, ranges)
    sums = _sums_of_ranges(rows, ranges, found)
    rows = rows.join(found, "row", "left", maintain_order="left")
    rows = rows.join(sums, "row", "left", maintain_order="left")
    has_state, start = pl.col("record_offset").is_not_null(), pl.col("start")
    has_start = has_state & start.is_not_null()
    end, log_start = pl.col("log_end_offset"), pl.col("log_start_offset")
    has_end, has_log_start = end >= 0, log_start >= 0
    known_to = pl.max_horizontal(end, pl.col("last") + 1)
    lost = (log_start - start).clip(0) - pl.col("lost_done").fill_null(0)
    return rows.with_columns(
        pl.when(has_state).then("in_flight").alias("in_flight"),
        pl.when(has_state).then(pl.col("near").fill_null(0)).alias("near_limit_count"),
        pl.when(has_start).then("next").alias("next_offset"),
        pl.when(has_start & (pl.col("last") >= start)).then("last").alias("last_stored_offset"),
        pl.when(has_state).then("locked").alias("window_offsets"),
        pl.when(has_state).then(f"count_{NOT_STORED}").alias("not_stored_count"),
        pl.when(has_start & has_end).then(known_to - start - pl.col("done")).alias("records_left"),
        pl.when(has_start & has_end).then(known_to - end).alias("offsets_beyond_end"),
        pl.when(has_start & has_log_start).then(lost).alias("lost_offsets"),
        pl.col("blocking_first").alias("blocking_first_offset"),
        pl.col("blocking_last").alias("blocking_last_offset"),
        pl.col("blocking_count").alias("blocking_delivery_count"),
        pl.when(has_state).then(pl.col("behind").fill_null(0)).alias("done_behind"),
        *(
            pl.when(has_state).then(f"count_{state}").alias(f"{STATE_NAMES[state].lower()}_count")
            for state in (AVAILABLE, ARCHIVING, ACKNOWLEDGED, ARCHIVED)
        ),
        state_name(pl.col("blocking_state")).alias("blocking_state"),
        has_state.alias("has_state"),
        pl.col("in_flight").alias("all_in_flight"),
    )


def _sums_of_ranges(rows: pl.DataFrame, ranges: pl.DataFrame, found: pl.DataFrame) -> pl.DataFrame:
    """Return by `row` how many offsets lie in some of its ranges.

    `near` are available for the last time, `behind` are dealt with beyond the next offset,
    `lost_done` are dealt with and below the start of the log.
    """
    known = rows.select("row", "delivery_count_limit", "log_start_offset")
    each = ranges.join(known, "row", "left").join(found.select("row", "next"), "row", "left")
    first, last, state = (pl.col(name) for name in ("first", "last", "state"))
    size, is_last = size_of(first, last), pl.col("count") >= pl.col("delivery_count_limit") - 1
    log_start = pl.col("log_start_offset").fill_null(-1)
    below = (pl.min_horizontal(last, log_start - 1) - first + 1).clip(0)
    is_behind = first > pl.col("next").fill_null(-1)
    return each.group_by("row").agg(
        counted(size.filter((state == AVAILABLE) & is_last)).alias("near"),
        counted(size.filter(is_done(state) & is_behind)).alias("behind"),
        below.filter(is_done(state)).sum().alias("lost_done"),
    )


def _with_members(
    rows: pl.DataFrame, groups: pl.DataFrame, assignments: pl.DataFrame
) -> pl.DataFrame:
    """Add how many members own each partition; null where the group is not there, or not whole.

    Args:
        rows: Share partitions.
        groups: The table `groups`: `group_id`, `complete`.
        assignments: The table `assignments`: `group_id`, `kind`, `topic_id`, `partition`.
    """
    owners = (
        assignments.filter(pl.col("kind") == "current")
        .group_by(_GROUP)
        .agg(pl.len().cast(pl.Int64).alias("owners"))
    )
    whole = groups.filter("complete").select(pl.col("group_id").unique(), is_whole=True)
    rows = rows.join(owners, _GROUP, "left", maintain_order="left")
    rows = rows.join(whole, "group_id", "left", maintain_order="left")
    return rows.with_columns(members=pl.when("is_whole").then(pl.col("owners").fill_null(0)))


def _with_phases(rows: pl.DataFrame, found: pl.DataFrame, name: str) -> pl.DataFrame:
    """Add since when partitions are being initialised, or topics deleted.

    Args:
        rows: Share partitions, with their `phase`.
        found: Of `phases`.
        name: Of the column.
    """
    for of, keys in (("partition", _GROUP), ("topic", _GROUP[:2])):
        is_of = pl.col("partition").is_not_null() == (of == "partition")
        since = found.filter(is_of).unique(keys, keep="last", maintain_order=True)
        since = since.select(*keys, pl.col("phase_since").alias(f"since_{of}"))
        rows = rows.join(since, keys, "left", maintain_order="left")
    is_passing = pl.col("phase").is_in(["initializing", "deleting"])
    since_then = pl.when(is_passing).then(pl.coalesce("since_topic", "since_partition"))
    return rows.with_columns(since_then.alias(name)).drop("since_topic", "since_partition")


def _with_stalls(rows: pl.DataFrame, found: pl.DataFrame) -> pl.DataFrame:
    """Add since when start offsets stand; that of what is dealt with to the end is nobody's."""
    left = pl.col("records_left")
    has_left = (left > 0) | (left.is_null() & (pl.col("all_in_flight") > 0))
    rows = rows.join(found, "row", "left", maintain_order="left").with_columns(
        start_moved_at=instant(pl.col("moved_at")),
        stalled_since=pl.when(has_left).then(instant(pl.col("since"))),
    )
    # By a clock that was set or wrong it may have been earlier or later.
    return rows.with_columns(
        pl.when(pl.col(at).is_not_null() & ~pl.col("is_unmeasured"))
        .then(pl.when(is_exact).then(pl.lit("exact")).otherwise(pl.lit("at_latest")))
        .alias(name)
        for name, at, is_exact in (
            ("start_moved_bound", "start_moved_at", "is_moved_exact"),
            ("stalled_bound", "stalled_since", "is_since_exact"),
        )
    )


def _with_clock(rows: pl.DataFrame) -> pl.DataFrame:
    """Say where a clock was set, so that nothing tells how long something is as it is."""
    has_left = (pl.coalesce("records_left", "in_flight") > 0).fill_null(value=False)
    of_phase, stands = pl.col("undated_since").is_not_null(), pl.col("is_unmeasured") & has_left
    why = pl.when(of_phase).then(pl.lit(GROUPS_WENT_BACK)).when(stands).then(pl.lit(WENT_BACK))
    return rows.with_columns(
        is_phase_unmeasured=of_phase,
        is_stall_unmeasured=stands,
        reason=pl.coalesce("reason", why),
    )


def worst_first(rows: pl.DataFrame, rules: ShareRules) -> pl.DataFrame:
    """Sort rows of `share_backlog`, the worst status first, in each what has the most left."""
    statuses = {word: rank for rank, word in enumerate(rules.statuses)}
    rank = pl.col("status").replace_strict(statuses, return_dtype=pl.Int32)
    order = [rank, pl.col("records_left"), "group_id", "topic", "partition", "topic_id"]
    return rows.sort(
        order, descending=[False, True, *[False] * 4], nulls_last=True, maintain_order=True
    )
