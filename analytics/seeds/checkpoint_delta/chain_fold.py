"""Checkpoints and deltas of many data partitions to what a share-partition leader would recover.

An early text of KIP-932, "Recovering share-partition state and interactions with log cleaning".
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from analytics.seeds.checkpoint_delta.control_segments import RECORDS
from analytics.wire.compiled import compiled
from schemas.catalog import broken_chain_words, odd_chain_words

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from analytics.seeds.checkpoint_delta.control_segments import ChainLog
    from analytics.wire.compiled import Numbers

    Rows = NDArray[np.int64]

# The loop that follows chains of checkpoints and deltas, compiled where there is much to do.
#
# Rules of the early text of KIP-932, "Recovering share-partition state": the state is the latest
# checkpoint and the deltas with its epoch that chain back to it, applied in order. What breaks a
# chain ends it: what comes after is not applied until the next checkpoint.

(
    SOUND,
    NO_CHECKPOINT,
    CHECKPOINT_MISSING,
    SUPERSEDED_EPOCH,
    RECORD_MISSING,
    NOT_CHAINED,
    BEHIND_A_BREAK,
    ACQUIRED_STORED,
    UNKNOWN_STATE,
    INVERTED_RANGE,
    RANGE_BEYOND_END,
    BAD_OFFSETS,
    BELOW_START,
    FINAL_STATE_LEFT,
    EPOCH_NOT_NEXT,
) = range(15)
"""What a record is to its chain; from `BELOW_START` on it is applied, and something is odd."""

KIND, EPOCH, BACK, START, END, OFFSET, KEY = range(7)
"""Columns of a record; those it does not have are -1."""
FIRST, LAST, STATE, COUNT = range(4)
"""Columns of a range."""
REASON, START_AFTER, END_AFTER = range(3)
"""Columns of what is told of each record; offsets are -1 where there is no state."""
HEAD, TAIL, BASE, NEWEST, BREAK, DELTAS, OTHERS = range(7)
"""Columns of what is told of each key: where its ranges lie in what is left; its checkpoint, the
last record that was applied and the one that ended the chain, -1 where there is none; how many
deltas were applied, and how many behind the checkpoint name another epoch."""

_EPOCHS: Final = 1 << 16
_NEWER: Final = 1 << 15
_LAST_OFFSET: Final = 2**63 - 1
_AVAILABLE, _ACQUIRED, _ACKNOWLEDGED, _ARCHIVED = 0, 1, 2, 4


def judge_ranges(ranges: Rows, first: int, stop: int, end: int) -> int:
    """Return what is wrong with the ranges of a record; ``end`` is -1 where any end is right."""
    for row in range(first, stop):
        state = ranges[row, STATE]
        if state == _ACQUIRED:
            return ACQUIRED_STORED
        if state not in (_AVAILABLE, _ACKNOWLEDGED, _ARCHIVED):
            return UNKNOWN_STATE
        if ranges[row, LAST] < ranges[row, FIRST]:
            return INVERTED_RANGE
        if ranges[row, FIRST] < 0 or ranges[row, LAST] >= _LAST_OFFSET or ranges[row, COUNT] < 0:
            return BAD_OFFSETS
        if end >= 0 and ranges[row, LAST] >= end:
            return RANGE_BEYOND_END
    return SOUND


def put_range(held: Rows, row: int, first: int, last: int, state: int, count: int) -> None:
    """Write a range."""
    held[row, FIRST], held[row, LAST] = first, last
    held[row, STATE], held[row, COUNT] = state, count


def move_ranges(held: Rows, first: int, stop: int, by: int) -> None:
    """Move ranges up or down by so many places."""
    for step in range(stop - first):
        row = stop - 1 - step if by > 0 else first + step
        put_range(
            held, row + by, held[row, FIRST], held[row, LAST], held[row, STATE], held[row, COUNT]
        )


def place_of(held: Rows, head: int, tail: int, offset: int) -> int:
    """Return the first range that ends at an offset or behind it."""
    while head < tail:
        middle = (head + tail) // 2
        if held[middle, LAST] < offset:
            head = middle + 1
        else:
            tail = middle
    return head


def overlay(
    held: Rows, head: int, tail: int, first: int, last: int, state: int, count: int
) -> tuple[int, bool]:
    """Put a range over those that are held, which are ascending and disjoint.

    Returns:
        Where they end now, and whether records left a state that is final.
    """
    begin = place_of(held, head, tail, first)
    stop = begin
    left_final = False
    while stop < tail and held[stop, FIRST] <= last:
        was = held[stop, STATE]
        if was not in (_AVAILABLE, state):
            left_final = True
        stop += 1
    before = stop > begin and held[begin, FIRST] < first
    after = stop > begin and held[stop - 1, LAST] > last
    b_first, b_state, b_count = held[begin, FIRST], held[begin, STATE], held[begin, COUNT]
    a_row = stop - 1 if after else begin
    a_last, a_state, a_count = held[a_row, LAST], held[a_row, STATE], held[a_row, COUNT]
    by = (1 if before else 0) + 1 + (1 if after else 0) - (stop - begin)
    if by != 0:
        move_ranges(held, stop, tail, by)
    row = begin
    if before:
        put_range(held, row, b_first, first - 1, b_state, b_count)
        row += 1
    put_range(held, row, first, last, state, count)
    if after:
        put_range(held, row + 1, last + 1, a_last, a_state, a_count)
    return tail + by, left_final


def judge_checkpoint(
    records: Numbers, row: int, ranges: Rows, first: int, stop: int, last_epoch: int
) -> int:
    """Return what a checkpoint is behind one of another epoch, or of none (-1)."""
    start, end = records[row, START], records[row, END]
    if start < 0 or end < start:
        return BAD_OFFSETS
    reason = judge_ranges(ranges, first, stop, end)
    if reason == SOUND and last_epoch >= 0 and (records[row, EPOCH] - last_epoch) % _EPOCHS != 1:
        return EPOCH_NOT_NEXT
    return reason


def judge_delta(records: Numbers, row: int, newest: int, last_epoch: int) -> int:
    """Return what a delta is to its chain, whose newest record is given, -1 where it is broken."""
    if last_epoch < 0:
        return NO_CHECKPOINT
    if records[row, EPOCH] != last_epoch:
        is_newer = (records[row, EPOCH] - last_epoch) % _EPOCHS < _NEWER
        return CHECKPOINT_MISSING if is_newer else SUPERSEDED_EPOCH
    if newest < 0:
        return BEHIND_A_BREAK
    before, back = records[newest, OFFSET], records[row, BACK]
    if back == before:
        return SOUND
    return RECORD_MISSING if before < back < records[row, OFFSET] else NOT_CHAINED


def apply_ranges(  # noqa: PLR0913, PLR0917 - what a state is made of
    ranges: Rows, first: int, stop: int, held: Rows, head: int, tail: int, start: int, end: int
) -> tuple[int, int, int, int, int]:
    """Put the ranges of a record into a state.

    Returns:
        Where the ranges that are held begin and end, start and end offset, and what was odd.
    """
    odd = SOUND
    for row in range(first, stop):
        if ranges[row, FIRST] < start:
            odd = max(odd, BELOW_START)
        begins, ends = max(ranges[row, FIRST], start), ranges[row, LAST]
        if ends < begins:
            continue
        tail, left_final = overlay(
            held, head, tail, begins, ends, ranges[row, STATE], ranges[row, COUNT]
        )
        end = max(end, ends + 1)
        if left_final:
            odd = FINAL_STATE_LEFT
    while head < tail and held[head, FIRST] == start and held[head, STATE] != _AVAILABLE:
        start = held[head, LAST] + 1
        head += 1
    return head, tail, start, max(end, start), odd


@compiled(
    "int64(Array(int64, 2, 'C', readonly=True), int64[::1], int64[:, ::1], int64[:, ::1], "
    "int64[:, ::1], int64[:, ::1])",
    judge_ranges,
    put_range,
    move_ranges,
    place_of,
    overlay,
    judge_checkpoint,
    judge_delta,
    apply_ranges,
)
def follow_chains(
    records: Numbers, bounds: Rows, ranges: Rows, judgements: Rows, keys: Rows, held: Rows
) -> int:
    """Follow the chain of every key.

    Args:
        records: Rows by key and offset; keys are numbered from 0, none is left out.
        bounds: Where the ranges of each record begin, and the end of the last.
        ranges: The ranges of all records.
        judgements: Filled: what each record is.
        keys: Filled: what is left of each key; before no deltas, no others, and -1.
        held: Filled: the ranges that are left; room for two of each range, and one more.

    Returns:
        Rows of ``held`` that are used.
    """
    key, floor, head, tail = -1, 0, 0, 0
    start = end = last_epoch = newest = -1
    for row in range(len(judgements)):
        if records[row, KEY] != key:
            key, floor, head = records[row, KEY], tail, tail
            start = end = last_epoch = newest = -1
        first, stop = bounds[row], bounds[row + 1]
        if records[row, KIND] == 0:
            reason = judge_checkpoint(records, row, ranges, first, stop, last_epoch)
            is_applied = reason in (SOUND, EPOCH_NOT_NEXT)
            head, tail, last_epoch = floor, floor, records[row, EPOCH]
            start, end = (records[row, START], records[row, END]) if is_applied else (-1, -1)
            keys[key, BASE] = row if is_applied else -1
            keys[key, BREAK] = -1 if is_applied else row
            keys[key, NEWEST] = -1
            keys[key, DELTAS], keys[key, OTHERS] = 0, 0
        else:
            reason = judge_delta(records, row, newest, last_epoch)
            if reason == SOUND:
                reason = judge_ranges(ranges, first, stop, -1)
            is_applied = reason == SOUND
            keys[key, DELTAS] += is_applied
            keys[key, OTHERS] += reason in (CHECKPOINT_MISSING, SUPERSEDED_EPOCH)
            if keys[key, BREAK] < 0 and reason not in (SOUND, NO_CHECKPOINT, SUPERSEDED_EPOCH):
                keys[key, BREAK] = row
        if is_applied:
            newest = keys[key, NEWEST] = row
            head, tail, start, end, odd = apply_ranges(
                ranges, first, stop, held, head, tail, start, end
            )
            reason = max(reason, odd)
        elif keys[key, BREAK] >= 0:
            newest = -1
        keys[key, HEAD], keys[key, TAIL] = head, tail
        judgements[row, REASON], judgements[row, START_AFTER], judgements[row, END_AFTER] = (
            reason,
            start,
            end,
        )
    return tail


REASONS = (None, *broken_chain_words(), *odd_chain_words())
"""Words in the order of the loop's numbers."""
FIRST_ODD = 1 + len(broken_chain_words())


@dataclass(frozen=True)
class Chains:
    """What chains add up to.

    Attributes:
        logs: The logs they are of.
        records: The columns of `RECORDS`, by log, group and offset.
        key: For each record, the number of its share partition.
        judgements: For each record the columns `REASON`, `START_AFTER`, `END_AFTER` of the loop.
        key_log: For each share partition, the number of its log.
        key_group: Likewise its group.
        keys: Likewise the columns from `HEAD` to `OTHERS` of the loop.
        ranges: Ranges of offsets that are left, by share partition; neighbours differ.
        range_key: For each of them, the number of its share partition.
    """

    logs: Sequence[ChainLog]
    records: pa.Table
    key: Rows
    judgements: Rows
    key_log: Rows
    key_group: pa.Array
    keys: Rows
    ranges: Rows
    range_key: Rows

    def column(self, name: str) -> Rows:
        """Return a column of the records; -1 where it is null."""
        return _numbers(self.records[name])


def fold_chains(logs: Sequence[ChainLog]) -> Chains:
    """Follow the chains of all groups in all logs."""
    records, log = _together(logs)
    codes = records["group_id"].combine_chunks().dictionary_encode()
    group = codes.indices.to_numpy().astype(np.int64)
    order = np.lexsort((_numbers(records["offset"]), group, log))
    records, log, group = records.take(pa.array(order)), log[order], group[order]
    pair = np.stack([log, group], axis=1)
    is_new = np.ones(len(pair), np.bool_)
    is_new[1:] = (pair[1:] != pair[:-1]).any(axis=1)
    key = np.cumsum(is_new) - 1
    told, keys, held = _followed(records, key, int(is_new.sum()))
    ranges, range_key = _left(keys, held)
    return Chains(
        logs,
        records,
        key,
        told,
        log[is_new],
        codes.dictionary.take(pa.array(group[is_new])),
        keys,
        ranges,
        range_key,
    )


def _together(logs: Sequence[ChainLog]) -> tuple[pa.Table, Rows]:
    """Return the records of all logs, and for each the number of its log."""
    parts = [each.records for each in logs] or [RECORDS.empty_table()]
    sizes = [each.num_rows for each in parts]
    return pa.concat_tables(parts).combine_chunks(), np.repeat(np.arange(len(parts)), sizes)


def _followed(records: pa.Table, key: Rows, count: int) -> tuple[Rows, Rows, Rows]:
    """Run the loop: what is told of each record and of each key, and the ranges it held."""
    keys = np.full((count, OTHERS + 1), -1)
    keys[:, [HEAD, TAIL, DELTAS, OTHERS]] = 0
    told = np.full((key.size, 3), -1)
    if not key.size:
        return told, keys, np.empty((0, 4), np.int64)
    names = ("kind", "checkpoint_epoch", "back_offset", "start_offset", "end_offset", "offset")
    given = np.stack([*(_numbers(records[name]) for name in names), key], axis=1)
    lists = records["states"].combine_chunks()
    bounds = np.zeros(key.size + 1, np.int64)
    np.cumsum(pc.fill_null(pc.list_value_length(lists), 0).to_numpy(), out=bounds[1:])
    parts = [_numbers(each) for each in lists.flatten().flatten()]
    ranges = np.ascontiguousarray(np.stack(parts, axis=1))
    held = np.zeros((2 * len(ranges) + 1, 4), np.int64)
    work = given.size + ranges.size
    follow_chains(work, np.ascontiguousarray(given), bounds, ranges, told, keys, held)
    return told, keys, held


def _left(keys: Rows, held: Rows) -> tuple[Rows, Rows]:
    """Return the ranges that are left, neighbours that are alike joined, and whose they are."""
    size = keys[:, TAIL] - keys[:, HEAD]
    key = np.repeat(np.arange(len(keys)), size)
    first = np.cumsum(size) - size
    row = np.arange(key.size) - np.repeat(first - keys[:, HEAD], size)
    ranges = held[row]
    begins = np.ones(key.size, np.bool_)
    begins[1:] = (
        (key[1:] != key[:-1])
        | (ranges[1:, FIRST] != ranges[:-1, LAST] + 1)
        | (ranges[1:, [STATE, COUNT]] != ranges[:-1, [STATE, COUNT]]).any(axis=1)
    )
    ends = np.append(begins[1:], True)[: key.size]
    found = ranges[begins].copy()
    found[:, LAST] = ranges[ends, LAST]
    return found, key[begins]


def _numbers(column: pa.ChunkedArray | pa.Array) -> Rows:
    numbers: Rows = pc.fill_null(column, -1).to_numpy(zero_copy_only=False).astype(np.int64)
    return numbers
