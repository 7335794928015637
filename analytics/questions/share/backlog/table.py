"""The table `share_backlog`: what is left to deliver of each share partition, what holds it up."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from analytics.questions.marks import marked
from analytics.questions.share.backlog.archived_ranges import archived_ranges
from analytics.questions.share.backlog.delivery_counts import delivery_counts
from analytics.questions.share.backlog.first_starts import with_first_starts
from analytics.questions.share.backlog.group_side import with_members, with_phases
from analytics.questions.share.backlog.isolation import STABLE_ENDS, with_isolation
from analytics.questions.share.backlog.share_lag import with_share_lag
from analytics.questions.share.backlog.stalls import Stalls, stalls
from analytics.questions.share.backlog.status import with_status
from analytics.questions.share.backlog.whole_state import StateCoverage, with_absence
from analytics.questions.share.clock_words import GROUPS_WENT_BACK, WENT_BACK
from analytics.questions.share.lifecycle.phases import parted_by_clock
from analytics.questions.share.lifecycle.stuck_phases import stuck_phases
from analytics.questions.share.places import places_in
from analytics.questions.share.settings import DELIVERY_LIMIT, RECORD_LOCKS
from analytics.questions.share.state_log.state_faults import state_faults
from analytics.questions.share.state_log.window import (
    NONE,
    NOT_STORED,
    STATE_NAMES,
    state_name,
    windows,
)
from analytics.replay.share.share_ranges import Ranges
from analytics.replay.share.share_records import ACKNOWLEDGED, ARCHIVED, ARCHIVING, AVAILABLE
from analytics.time_columns import times_of
from schemas import table

if TYPE_CHECKING:
    from datetime import datetime

    from numpy.typing import NDArray

    from analytics.questions.share.settings import ShareSettings
    from analytics.questions.share.state_log.share_log import ShareLog
    from analytics.questions.share.state_log.window import Windows
    from analytics.replay.log.log_clocks import LogClock
    from analytics.replayed.end_offset_samples import EndOffsetSamples
    from schemas.share_rules import ShareRules

    Numbers = NDArray[np.int64]

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

    shares: pa.Table
    batches: pa.Table
    groups: pa.Table
    assignments: pa.Table
    phases: pa.Table
    transactions: pa.Table | None = None
    stable: pa.Table = field(default_factory=STABLE_ENDS.empty_table)


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
    ends: pa.Table
    samples: EndOffsetSamples
    gone: pa.Array
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

    rows: pa.Table
    delivery_counts: pa.Table
    archived: pa.Table
    faults: pa.Table


def evaluate_share(asked: ShareQuestion) -> Share:
    """Return how far share groups are behind at the instant, and what holds them up."""
    rows = _with_ends(asked)
    batches = asked.tables.batches
    of_batch = places_in(rows, batches, _GROUP)
    start = pc.fill_null(rows["start_offset"], NONE).to_numpy()
    ranges = _ranges(batches, of_batch, start)
    found = windows(start, ranges)
    rows = _with_settings(rows, asked.settings)
    rows = _with_window(rows, found, ranges, start)
    rows = with_first_starts(rows, asked.log, asked.settings, asked.coverage.gaps)
    rows = with_isolation(rows, asked.settings, asked.tables.transactions, asked.tables.stable)
    rows = with_members(rows, asked.tables.groups, asked.tables.assignments)
    phases, undated = parted_by_clock(asked.tables.phases, asked.groups_clocks)
    rows = with_phases(rows, phases)
    stood = stalls(rows, asked.log, asked.samples, asked.clocks)
    rows = _with_stalls(rows, stood, found)
    rows = _with_clock(rows, stood, with_phases(rows.drop_columns(["phase_since"]), undated))
    rows = _told_of_beyond(rows)
    rows = with_status(rows, asked.rules, asked.as_of)
    faults = [
        state_faults(rows, asked.log, asked.rules),
        stuck_phases(phases, asked.rules, asked.as_of),
    ]
    return Share(
        _worst_first(rows, asked.rules),
        marked(delivery_counts(rows, ranges), rows, _GROUP),
        marked(archived_ranges(rows, asked.log), rows, _GROUP),
        pa.concat_tables(faults),
    )


def _with_ends(asked: ShareQuestion) -> pa.Table:
    """Add where logs end, and Kafka's lag; a topic that is gone has no log."""
    shares = with_absence(asked.tables.shares, asked.coverage)
    is_gone = pc.fill_null(pc.is_in(shares["topic_id"], asked.gone), fill_value=False)
    there = with_share_lag(shares.filter(pc.invert(is_gone)), asked.ends)
    gone = with_share_lag(shares.filter(is_gone), asked.ends.slice(0, 0))
    rows = pa.concat_tables([there, gone]).sort_by([(name, "ascending") for name in _GROUP])
    left = pc.is_in(rows["topic_id"], asked.gone)
    why = pc.case_when(
        pc.make_struct(
            left,
            pc.is_null(rows["start_offset"]),
            pc.is_null(rows["log_end_offset"]),
            pc.is_null(rows["delivery_complete_count"]),
        ),
        GONE,
        NO_START,
        NO_END,
        NOT_COUNTED,
        pa.scalar(None, pa.string()),
    )
    return rows.append_column("reason", pc.coalesce(rows["fault"], why))


def _ranges(batches: pa.Table, places: Numbers, start: Numbers) -> Ranges:
    """Return the stored ranges by place of their share partition, ascending.

    What lies below a start offset, which a leader refuses to load, is cut away.
    """
    columns = [
        batches[name].to_numpy()
        for name in ("first_offset", "last_offset", "delivery_state", "delivery_count")
    ]
    order = np.lexsort((columns[0], places))
    order = order[places[order] >= 0]
    first, last, state, count = (each[order] for each in columns)
    place = places[order]
    found = Ranges(place, np.maximum(first, start[place]), last, state, count)
    return found.where(found.last >= found.first)


def _with_settings(rows: pa.Table, settings: ShareSettings) -> pa.Table:
    for name, column in (
        (DELIVERY_LIMIT, "delivery_count_limit"),
        (RECORD_LOCKS, "max_record_locks"),
    ):
        values, sources, since = settings.columns(rows["group_id"], name, pa.int64())
        rows = rows.append_column(column, values).append_column(f"{column}_source", sources)
        rows = rows.append_column(f"{column}_since", since)
    return rows


def _with_window(rows: pa.Table, found: Windows, ranges: Ranges, start: Numbers) -> pa.Table:
    """Add what the window holds; null where there is no state."""
    has_state = pc.is_valid(rows["record_offset"]).to_numpy()
    limit = rows["delivery_count_limit"].to_numpy()
    near = _sum(
        ranges, (ranges.state == AVAILABLE) & (ranges.count >= limit[ranges.key] - 1), start
    )
    done = (ranges.state == ACKNOWLEDGED) | (ranges.state == ARCHIVED)
    behind = _sum(ranges, done & (ranges.first > found.next[ranges.key]), start)
    has_start = has_state & (start >= 0)
    end = pc.fill_null(rows["log_end_offset"], NONE).to_numpy()
    log_start = pc.fill_null(rows["log_start_offset"], NONE).to_numpy()
    known_to = np.maximum(end, found.last + 1)
    left = known_to - start - found.done
    numbers = {
        "in_flight": (found.in_flight, has_state),
        "near_limit_count": (near, has_state),
        "next_offset": (found.next, has_start),
        "last_stored_offset": (found.last, has_start & (found.last >= start)),
        "window_offsets": (found.locked, has_state),
        "not_stored_count": (found.counts[:, NOT_STORED], has_state),
        "records_left": (left, has_start & (end >= 0)),
        "offsets_beyond_end": (known_to - end, has_start & (end >= 0)),
        "lost_offsets": (_lost(ranges, start, log_start), has_start & (log_start >= 0)),
        "blocking_first_offset": (found.blocking_first, found.blocking_first >= 0),
        "blocking_last_offset": (found.blocking_last, found.blocking_first >= 0),
        "blocking_delivery_count": (found.blocking_count, found.blocking_count >= 0),
        "done_behind": (behind, has_state),
    }
    for name, (values, known) in numbers.items():
        type_ = pa.int32() if name == "blocking_delivery_count" else pa.int64()
        rows = rows.append_column(name, pa.array(values, type_, mask=~known))
    for state in (AVAILABLE, ARCHIVING, ACKNOWLEDGED, ARCHIVED):
        name = f"{STATE_NAMES[state].lower()}_count"
        place = rows.column_names.index(name)
        counted = pa.array(found.counts[:, state], mask=~has_state)
        rows = rows.set_column(place, name, counted)
    names = [None if each == NONE else state_name(each) for each in found.blocking_state.tolist()]
    rows = rows.append_column("blocking_state", pa.array(names, pa.string()))
    return rows.append_column("has_state", pa.array(has_state))


def _told_of_beyond(rows: pa.Table) -> pa.Table:
    """Say what follows where the stored state reaches beyond the end of the log."""
    is_beyond = pc.fill_null(pc.greater(rows["offsets_beyond_end"], 0), fill_value=False)
    reason = pc.coalesce(rows["reason"], pc.if_else(is_beyond, BEYOND, None))
    return rows.set_column(rows.column_names.index("reason"), "reason", reason)


def _sum(ranges: Ranges, chosen: NDArray[np.bool_], places: Numbers) -> Numbers:
    picked = ranges.where(chosen)
    return picked.counted(picked.key, places.size)


def _lost(ranges: Ranges, start: Numbers, log_start: Numbers) -> Numbers:
    """Return how many offsets from the start offset on retention took before they were done."""
    below = np.minimum(ranges.last, log_start[ranges.key] - 1) - ranges.first + 1
    done = (ranges.state == ACKNOWLEDGED) | (ranges.state == ARCHIVED)
    dealt_with = np.zeros(start.size, np.int64)
    np.add.at(dealt_with, ranges.key[done], np.maximum(below[done], 0))
    found: Numbers = np.maximum(log_start - start, 0) - dealt_with
    return found


def _with_stalls(rows: pa.Table, found: Stalls, window: Windows) -> pa.Table:
    """Add since when start offsets stand; that of what is dealt with to the end is nobody's."""
    left = pc.fill_null(rows["records_left"], NONE).to_numpy()
    has_left = (left > 0) | ((left == NONE) & (window.in_flight > 0))
    for name, times, known in (
        ("start_moved_at", found.moved_at, found.moved_at != NONE),
        ("stalled_since", found.since, has_left & (found.since != NONE)),
    ):
        rows = rows.append_column(name, times_of(times, ~known))
    for name, is_exact in (
        ("start_moved_bound", found.is_moved_exact),
        ("stalled_bound", found.is_since_exact),
    ):
        of = rows["start_moved_at" if name == "start_moved_bound" else "stalled_since"]
        word = pc.if_else(pa.array(is_exact), "exact", "at_latest")
        # By a clock that was set or wrong it may have been earlier or later.
        is_told = pc.and_(pc.is_valid(of), pa.array(~found.is_unmeasured))
        rows = rows.append_column(name, pc.if_else(is_told, word, None))
    return rows


def _with_clock(rows: pa.Table, stood: Stalls, undated: pa.Table) -> pa.Table:
    """Say where a clock was set, so that nothing tells how long something is as it is.

    Args:
        rows: With `phase_since` as far as it measures something.
        stood: Since when start offsets stand.
        undated: The same rows with the `phase_since` that measures nothing.
    """
    of_phase = pc.is_valid(undated["phase_since"])
    left, window = rows["records_left"], rows["in_flight"]
    has_left = pc.fill_null(pc.greater(pc.coalesce(left, window), 0), fill_value=False)
    stands = pc.and_(pa.chunked_array([pa.array(stood.is_unmeasured)]), has_left)
    rows = rows.append_column("is_phase_unmeasured", of_phase)
    rows = rows.append_column("is_stall_unmeasured", stands)
    nothing = pa.scalar(None, pa.string())
    why = pc.case_when(pc.make_struct(of_phase, stands), GROUPS_WENT_BACK, WENT_BACK, nothing)
    reason = pc.coalesce(rows["reason"], why)
    return rows.set_column(rows.column_names.index("reason"), "reason", reason)


def _worst_first(rows: pa.Table, rules: ShareRules) -> pa.Table:
    rank = pc.index_in(rows["status"], pa.array(list(rules.statuses)))
    order = [("rank", "ascending"), ("records_left", "descending")]
    names = ("group_id", "topic", "partition", "topic_id")
    rows = rows.append_column("rank", rank)
    rows = rows.sort_by([*order, *((name, "ascending") for name in names)])
    contract = table("share_backlog")
    return rows.select([each.name for each in contract.columns])
