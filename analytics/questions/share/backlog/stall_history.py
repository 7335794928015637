"""The table `share_stalls`: when share partitions stood still while there were records to deliver.

Of each run of a share partition (`share_log`) it follows from the log at which record the next
offset came to where: an offset is dealt with from the first record on that stores it as such, or
whose start offset lies beyond it, and the next offset is beyond all that are. It stood still from
one such record to the next; that was a stall from when a record at or beyond it was stored.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from analytics.questions.share.backlog.progress import Covers, first_covers
from analytics.questions.share.clock_words import WENT_BACK
from analytics.questions.share.places import AFTER_ALL
from analytics.questions.share.state_log.share_log import NO_TIME
from analytics.questions.share.state_log.window import NONE, NOT_STORED, is_done, state_name
from analytics.replay.log.log_clocks import LogClock
from analytics.replay.share.share_ranges import Ranges
from analytics.replay.share.share_records import SNAPSHOT
from analytics.time_columns import times_of
from schemas import table

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from analytics.questions.share.state_log.share_log import ShareLog

    Numbers = NDArray[np.int64]

BLOCKED: Final = "blocked"
STALLED: Final = "stalled"
MOVED: Final = "moved"
RESET: Final = "reset"
EXACT: Final = "exact"
AT_LATEST: Final = "at_latest"
_NO_CLOCKS: Final[Mapping[int, LogClock]] = {}
_RIGHT: Final = LogClock()


@dataclass(frozen=True)
class _Run:
    """The records of one run, and the ranges they store, both in the order of the log.

    Attributes:
        share: The share partition's number.
        first: The place of its first record in the log.
        start: The start offset in force after each record.
        at: When each was written, and behind them, where another run follows, its first one.
        ranges: What they store; `key` is the record's place among those of the run.
        is_told: Its first record shows how it began.
        is_ended: Another run follows.
    """

    share: int
    first: int
    start: Numbers
    at: Numbers
    ranges: Ranges
    is_told: bool
    is_ended: bool

    @property
    def end(self) -> int:
        """How many records it has."""
        return self.start.size


def stall_history(
    log: ShareLog,
    least_ms: int,
    as_of_ms: int,
    gaps: Mapping[int, str],
    clocks: Mapping[int, LogClock] = _NO_CLOCKS,
) -> pa.Table:
    """Return every stall that lasted, the longest first.

    Args:
        log: All records up to the instant that the files hold.
        least_ms: What stood for less is none.
        as_of_ms: The instant.
        gaps: By partition of the topic, what the dump lacks of it: what moved a start offset there
            may be among that.
        clocks: By partition of the topic, where its clocks were set or wrong. How long something
            stood by them is not told; what stood from one clock to another may have stood for long,
            and is a row.

    Returns:
        The columns of `share_stalls`, but names of topics.
    """
    rows: list[dict[str, Any]] = []
    for run in _runs(log):
        number = log.shares["coordinator_partition"][run.share].as_py()
        clock = clocks.get(number, _RIGHT)
        rows += _lasting(_stalls(run, as_of_ms), log, (least_ms, as_of_ms), clock)
    whose = pa.array([each["share"] for each in rows], pa.int64())
    shares = log.shares.take(whose)
    numbers = shares["coordinator_partition"].to_pylist()
    missing = [
        "; ".join(why for why in (gaps.get(number), each["clock"]) if why) or None
        for number, each in zip(numbers, rows, strict=True)
    ]
    records = np.array([each["record"] for each in rows], np.int64)
    columns = {
        **{name: shares[name] for name in ("group_id", "topic_id")},
        "partition": shares["partition"].cast(pa.int32()),
        **{
            name: pa.array([each[name] for each in rows], type_)
            for name, type_ in (
                ("kind", pa.string()),
                ("next_offset", pa.int64()),
                ("since", pa.int64()),
                ("since_bound", pa.string()),
                ("until", pa.int64()),
                ("duration_ms", pa.int64()),
                ("ended_by", pa.string()),
                ("blocking_state", pa.string()),
                ("blocking_delivery_count", pa.int32()),
                ("done_behind", pa.int64()),
            )
        },
        "coordinator_partition": pa.array(numbers, pa.int32()),
        "record_offset": pa.array(log.offset[np.maximum(records, 0)], mask=records < 0),
        "complete": pa.array([each is None for each in missing], pa.bool_()),
        "missing": pa.array(missing, pa.string()),
    }
    for name in ("since", "until"):
        columns[name] = times_of(columns[name].fill_null(-1).to_numpy())
    order = [("duration_ms", "descending"), *((name, "ascending") for name in _ORDER)]
    return pa.table(columns).sort_by(order)


def _lasting(
    found: Iterable[dict[str, Any]], log: ShareLog, within: tuple[int, int], clock: LogClock
) -> Iterator[dict[str, Any]]:
    """Yield stalls that lasted, and those of which nothing measures whether they did."""
    least_ms, as_of_ms = within
    for each in found:
        ender = None if each["record"] < 0 else int(log.offset[each["record"]])
        since, until = each["since"], each["until"] or 0
        begun = int(log.offset[each["begins"]])
        # A time beyond the instant is not believed.
        is_unknown = clock.is_other(begun, ender) or max(since, until) > as_of_ms
        if is_unknown or each["duration_ms"] >= least_ms:
            ends = np.array([begun] if ender is None else [begun, ender])
            is_measured = not (is_unknown or clock.are_doubtful(ends).any())
            unmeasured = {"duration_ms": None, "clock": WENT_BACK}
            yield {**each, "clock": None, **({} if is_measured else unmeasured)}


def named_stalls(stalls: pa.Table, topics: pa.Table) -> pa.Table:
    """Return the table `share_stalls`: an id stands for a topic without a name.

    Args:
        stalls: Of `stall_history`.
        topics: The table `topics`: `topic`, `topic_id`.
    """
    known = topics.filter(pc.is_valid(topics["topic_id"]))
    place = pc.index_in(stalls["topic_id"], known["topic_id"].combine_chunks())
    name = known["topic"].combine_chunks().take(place.combine_chunks())
    rows = stalls.append_column("topic", pc.coalesce(name, stalls["topic_id"].combine_chunks()))
    return rows.select([each.name for each in table("share_stalls").columns])


_ORDER: Final = ("group_id", "topic_id", "partition", "since")


def _runs(log: ShareLog) -> Iterator[_Run]:
    """Yield runs; tombstones are the end of one, and none of their own where nothing precedes."""
    if not log.run.size:
        return
    begins = np.flatnonzero(np.diff(log.run, prepend=-1))
    ends = np.append(begins[1:], log.run.size)
    first_range = np.searchsorted(log.ranges.key, begins)
    last_range = np.searchsorted(log.ranges.key, ends)
    for begin, end, low, high in zip(begins, ends, first_range, last_range, strict=True):
        share = int(log.share[begin])
        is_followed = end < log.run.size and log.share[end] == share
        is_new = log.kind[begin] == SNAPSHOT and log.snapshot_epoch[begin] == 0
        yield _Run(
            share,
            int(begin),
            log.start[begin:end],
            log.at[begin : end + is_followed],
            Ranges(
                log.ranges.key[low:high] - begin,
                log.ranges.first[low:high],
                log.ranges.last[low:high],
                log.ranges.state[low:high],
                log.ranges.count[low:high],
            ),
            is_told=bool(is_new or not log.is_first[begin]),
            is_ended=bool(is_followed),
        )


def _stalls(run: _Run, as_of_ms: int) -> Iterator[dict[str, Any]]:
    """Yield each time between two movements of the next offset in which something was there."""
    moved_by, next_offsets = _movements(run)
    reach = np.maximum.accumulate(_reached(run))
    for number, (begun, offset) in enumerate(zip(moved_by, next_offsets, strict=True)):
        is_last = number + 1 == moved_by.size
        end = run.end if is_last else int(moved_by[number + 1])
        shown = int(np.searchsorted(reach, offset))
        if shown >= end:
            continue
        is_over = not is_last or run.is_ended
        # The last record of a run is no end by itself: the first of the next run is.
        ender = None if not is_over else run.first + end
        yield from _row(run, int(begun), int(offset), max(int(begun), shown), end, ender, as_of_ms)


def _row(
    run: _Run, begun: int, offset: int, since: int, end: int, ender: int | None, as_of_ms: int
) -> Iterator[dict[str, Any]]:
    until_ms = None if ender is None else int(run.at[end])
    times = [int(run.at[since]), as_of_ms if until_ms is None else until_ms]
    if NO_TIME in times:
        return
    stored = run.ranges.where(run.ranges.key < end)
    there = stored.where((stored.first <= offset) & (stored.last >= offset))
    # Of all that was stored the greatest delivery count wins, as for coordinators.
    ranked = np.lexsort((there.state, there.count))
    behind = stored.where((stored.first > offset) & is_done(stored.state))
    done = _covered(behind.first, behind.last)
    last = int(ranked[-1]) if ranked.size else None
    # What was stored first may have been in the log before; and what begins a log was so before.
    is_exact = since == begun and (begun > 0 or run.is_told)
    yield {
        "share": run.share,
        "kind": BLOCKED if done else STALLED,
        "next_offset": offset,
        "since": times[0],
        "since_bound": EXACT if is_exact else AT_LATEST,
        "until": until_ms,
        "duration_ms": times[1] - times[0],
        "ended_by": None if ender is None else MOVED if end < run.end else RESET,
        "blocking_state": state_name(NOT_STORED if last is None else int(there.state[last])),
        "blocking_delivery_count": None if last is None else int(there.count[last]),
        "done_behind": done,
        "begins": run.first + since,
        "record": -1 if ender is None else ender,
    }


def _movements(run: _Run) -> tuple[Numbers, Numbers]:
    """Return the records by which the next offset came to where it then stood, and where."""
    known = np.flatnonzero(run.start >= 0)
    if not known.size:
        return known, known
    begun = known[0]
    base = run.start[begun]
    chosen = is_done(run.ranges.state)
    pieces = first_covers(run.ranges.where(chosen), np.zeros(int(chosen.sum()), np.int64))
    cuts = np.concatenate([[base], run.start[known], pieces.first, pieces.last + 1])
    cuts = np.unique(cuts[cuts >= base])
    dealt_with = np.minimum(_first_done(pieces, cuts), _first_start_beyond(run.start, cuts))
    # An offset is passed when it and all before it are dealt with.
    passed = np.maximum.accumulate(np.maximum(dealt_with, begun))
    before = np.concatenate([[begun], passed[:-1]])
    stands = passed > before
    return before[stands], cuts[stands]


def _first_done(pieces: Covers, offsets: Numbers) -> Numbers:
    """Return the first record that stores each offset as dealt with, or `AFTER_ALL`."""
    if not pieces.first.size:
        return np.full(offsets.size, AFTER_ALL)
    place = np.searchsorted(pieces.first, offsets, side="right") - 1
    is_in = (place >= 0) & (pieces.last[place] >= offsets)
    return np.where(is_in, pieces.record[place], AFTER_ALL)


def _first_start_beyond(start: Numbers, offsets: Numbers) -> Numbers:
    """Return the first record whose start offset is beyond each offset, or `AFTER_ALL`."""
    place = np.searchsorted(start, offsets, side="right")
    return np.where(place < start.size, place, AFTER_ALL)


def _reached(run: _Run) -> Numbers:
    """Return by record the last offset that it stores something of; -1 where nothing."""
    reached = np.full(run.end, NONE, np.int64)
    np.maximum.at(reached, run.ranges.key, run.ranges.last)
    return reached


def _covered(low: Numbers, high: Numbers) -> int:
    """Return how many offsets lie in ranges that may overlap."""
    if not low.size:
        return 0
    order = np.argsort(low)
    low, high = low[order], high[order]
    before = np.concatenate([[low[0] - 1], np.maximum.accumulate(high)[:-1]])
    return int(np.maximum(high - np.maximum(low, before + 1) + 1, 0).sum())
