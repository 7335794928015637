"""The table `share_faults`: records of share state that contradict those before them.

What no share coordinator writes in an intact log (``ShareCoordinatorShard``): state epochs,
snapshot epochs, leader epochs and start offsets go forward only; each snapshot is one ahead of the
one before, each update names the last; no record is delivered more often than the limit, or leaves
a delivery state that is final. A state that is initialised anew begins again: nothing is held
against what was before a deletion.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np
import pyarrow as pa

from analytics.questions.share.places import places_in
from analytics.questions.share.settings import ASSUMED
from analytics.questions.share.state_log.share_log import KEY, NO_TIME, begins
from analytics.questions.share.state_log.transitions import forbidden_transitions
from analytics.replay.share.share_records import (
    ACQUIRED,
    ARCHIVED,
    AVAILABLE,
    SNAPSHOT,
    TOMBSTONE,
    UNCHANGED,
    UPDATE,
)
from analytics.time_columns import times_of
from schemas import SHARE_GROUP_STATE

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import NDArray

    from analytics.questions.share.state_log.share_log import ShareLog
    from schemas.share_rules import ShareRules

    Numbers = NDArray[np.int64]
    Found = tuple[str, Numbers, Numbers, Numbers]
    """A word for the fault, the records, what was before, what they say."""

NONE: Final = -1
FAULTS: Final = pa.schema(
    [
        *((name, pa.string()) for name in ("group_id", "topic_id", "topic")),
        ("partition", pa.int32()),
        ("fault", pa.string()),
        ("at", pa.timestamp("us", "UTC")),
        ("before", pa.int64()),
        ("found", pa.int64()),
        ("is_assumed", pa.bool_()),
        ("record_topic", pa.string()),
        ("coordinator_partition", pa.int32()),
        ("record_offset", pa.int64()),
    ]
)
"""The columns of `share_faults`."""


def state_faults(rows: pa.Table, log: ShareLog, rules: ShareRules) -> pa.Table:
    """Return the faults of the records of share partitions.

    Args:
        rows: The table `share_backlog`: whose records are looked at.
        log: The records up to the instant.
        rules: Which delivery state may follow which.

    Returns:
        `FAULTS`, in the order of the log.
    """
    place = places_in(rows, log.shares, KEY)
    limit = np.append(rows["delivery_count_limit"].to_numpy(), 0)[place]
    since = np.append(rows["delivery_count_limit_since"].to_numpy(), 0)[place]
    sources = rows["delivery_count_limit_source"].to_pylist()
    is_assumed = np.array([*(each == ASSUMED for each in sources), False], np.bool_)[place]
    tables = [
        _rows(rows, log, place, word, found, is_assumed)
        for word, *found in (
            *_epochs(log),
            *_starts(log),
            *_ranges(log, limit, since),
            *_transitions(log, rules),
        )
    ]
    order = [(name, "ascending") for name in ("coordinator_partition", "record_offset", "fault")]
    return pa.concat_tables([FAULTS.empty_table(), *tables]).sort_by(order)


def _rows(
    rows: pa.Table,
    log: ShareLog,
    place: Numbers,
    word: str,
    found: list[Numbers],
    is_assumed: NDArray[np.bool_],
) -> pa.Table:
    record, before, now = found
    share = log.share[record]
    here = place[share] >= 0
    record, before, now, share = record[here], before[here], now[here], share[here]
    at = log.at[record]
    named = rows.take(place[share])
    columns = {
        **{name: named[name] for name in ("group_id", "topic_id", "topic", "partition")},
        "fault": pa.repeat(word, record.size),
        "at": times_of(np.where(at == NO_TIME, NONE, at)),
        "before": pa.array(before, mask=before == NONE),
        "found": pa.array(now, mask=now == NONE),
        "is_assumed": pa.array(
            is_assumed[share]
            if word == "delivery_count_over_limit"
            else np.zeros(at.size, np.bool_)
        ),
        "record_topic": pa.repeat(SHARE_GROUP_STATE, record.size),
        "coordinator_partition": log.shares["coordinator_partition"].take(share),
        "record_offset": log.offset[record],
    }
    return pa.table(columns).cast(FAULTS)


def _lives(log: ShareLog) -> Numbers:
    """Number what lies between deletions of a share partition."""
    gone = np.zeros(log.share.size, np.bool_)
    gone[1:] = log.kind[:-1] == TOMBSTONE
    return np.cumsum(begins(log.share) | gone)


def _last_before(chosen: NDArray[np.bool_], life: Numbers) -> Numbers:
    """Return for each record the last chosen one before it in its life; -1 where there is none."""
    places = np.arange(chosen.size)
    last = np.maximum.accumulate(np.where(chosen, places, NONE)) if chosen.size else places
    before = np.concatenate([[NONE], last[:-1]]) if chosen.size else places
    return np.where((before >= 0) & (life[before] == life), before, NONE)


def _epochs(log: ShareLog) -> Iterator[Found]:
    life = _lives(log)
    is_snapshot = log.kind == SNAPSHOT
    before = _last_before(is_snapshot, life)
    known = before >= 0
    for word, column in (("state_epoch_back", log.state_epoch), ("", log.snapshot_epoch)):
        last = np.where(known, column[before], NONE)
        now = np.where(is_snapshot, column, NONE)
        if word:
            yield _of(word, is_snapshot & known & (now < last), last, now)
        else:
            yield _of("snapshot_epoch_back", is_snapshot & known & (now <= last), last, now)
            yield _of("snapshot_skipped", is_snapshot & known & (now > last + 1), last, now)
    last = np.where(known, log.snapshot_epoch[before], NONE)
    is_other = (log.kind == UPDATE) & known & (log.snapshot_epoch != last)
    yield _of("other_snapshot", is_other, last, log.snapshot_epoch)
    led = (log.leader_epoch != UNCHANGED) & (log.kind != TOMBSTONE)
    before = _last_before(led, log.run)
    last = np.where(before >= 0, log.leader_epoch[before], NONE)
    yield _of("leader_epoch_back", led & (log.leader_epoch < last), last, log.leader_epoch)


def _starts(log: ShareLog) -> Iterator[Found]:
    """A start offset that goes back ends a run; one that is set anew with the state is no fault."""
    life = _lives(log)
    before = np.concatenate([[NONE], np.arange(log.share.size - 1)]) if log.share.size else life
    known = (before >= 0) & (life[before] == life)
    last = np.where(known, log.start[before], NONE)
    snapshots = _last_before(log.kind == SNAPSHOT, life)
    epoch = np.where(snapshots >= 0, log.state_epoch[snapshots], NONE)
    is_renewed = (log.kind == SNAPSHOT) & (log.state_epoch != epoch)
    is_blank = (log.kind == SNAPSHOT) & (log.leader_epoch == 0) & (log.start == UNCHANGED)
    back = known & (last >= 0) & (log.start < last) & ~is_renewed & ~is_blank
    yield _of("start_offset_back", back & (log.kind != TOMBSTONE), last, log.start)


def _ranges(log: ShareLog, limit: Numbers, since: Numbers) -> Iterator[Found]:
    stored = log.stored
    record = stored.key
    share = log.share[record]
    # What held before a limit was set, nothing tells.
    limits = np.where(log.at[record] >= since[share], limit[share], 0)
    count = stored.count.astype(np.int64)
    state = stored.state.astype(np.int64)
    for word, chosen, before, now in (
        ("delivery_count_over_limit", (count > limits) & (limits > 0), limits, count),
        ("inverted_range", stored.last < stored.first, stored.first, stored.last),
        ("unknown_delivery_state", (state < AVAILABLE) | (state > ARCHIVED), None, state),
        ("acquired_stored", state == ACQUIRED, None, state),
        (
            "range_below_start",
            (log.kind[record] == SNAPSHOT) & (stored.first < log.start[record]),
            log.start[record],
            stored.first,
        ),
    ):
        # One row a record, however many of its ranges are such.
        places = np.flatnonzero(chosen)
        each, first = np.unique(record[places], return_index=True)
        told = np.full(each.size, NONE) if before is None else before[places[first]]
        yield word, each, told, now[places[first]]


def _transitions(log: ShareLog, rules: ShareRules) -> Iterator[Found]:
    """One row a record, however many of its ranges and states are such."""
    found = list(forbidden_transitions(log, rules.transitions))
    if found:
        records, before, now = (np.concatenate(each) for each in zip(*found, strict=True))
        each, first = np.unique(records, return_index=True)
        yield "forbidden_transition", each, before[first], now[first]


def _of(word: str, chosen: NDArray[np.bool_], before: Numbers, now: Numbers) -> Found:
    places = np.flatnonzero(chosen)
    return word, places, before[places], now[places]
