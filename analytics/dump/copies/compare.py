"""Where two copies of a log part: by leader epochs, by headers, and in doubt by their bytes.

Within one epoch one leader wrote, so the same epoch at the same offset means the same batch. But an
epoch that goes on past the place where lines part shows nothing (the broker that died led in it
already), formats 0 and 1 know no epochs, and compaction changes a batch's header without changing
what is left of its records. So batches at the same offsets are held against each other, and the
records of those that differ.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from analytics.dump.copies.leadership import NO_EPOCH, truncation_offset
from analytics.dump.files.model import OTHER_TOPIC
from analytics.dump.records.segment_reader import FileReader, ReadOptions

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import NDArray

    from analytics.dump.batches.headers import Headers
    from analytics.dump.batches.walks import CopyLog
    from analytics.dump.records.raw_records import RawRecords, Spans

# Records of a stretch of a log, as bytes that can be held against another copy's.


@dataclass(frozen=True)
class RecordBytes:
    """Records, ascending by offset, and their keys and values one after the other.

    Attributes:
        offset: Of each record.
        timestamp: Milliseconds, -1 none.
        key_length: -1 null.
        value_length: -1 null.
        start: Where the key's bytes, and after them the value's, begin in ``content``.
        content: The bytes.
    """

    offset: NDArray[np.int64]
    timestamp: NDArray[np.int64]
    key_length: NDArray[np.int64]
    value_length: NDArray[np.int64]
    start: NDArray[np.int64]
    content: NDArray[np.uint8]

    @property
    def length(self) -> NDArray[np.int64]:
        """Bytes of key and value together."""
        return np.maximum(self.key_length, 0) + np.maximum(self.value_length, 0)


def records_between(log: CopyLog, low: int, high: int) -> RecordBytes:
    """Read the records with offsets from ``low`` to before ``high``; damaged ones are not there."""
    return _joined([_record_bytes(part, low, high) for part in _read(log, low, high)])


def offsets_between(log: CopyLog, low: int, high: int) -> NDArray[np.int64]:
    """Return the offsets of the records from ``low`` to before ``high``, ascending."""
    parts = [records.offset for records in _read(log, low, high)]
    offsets = np.sort(np.concatenate([np.empty(0, np.int64), *parts]))
    return offsets[(offsets >= low) & (offsets < high)]


def first_difference(ours: RecordBytes, theirs: RecordBytes) -> int | None:
    """Return the first offset at which both have a record, and not the same one."""
    offset, own, other = np.intersect1d(
        ours.offset, theirs.offset, assume_unique=True, return_indices=True
    )
    differs = ours.timestamp[own] != theirs.timestamp[other]
    differs |= ours.key_length[own] != theirs.key_length[other]
    differs |= ours.value_length[own] != theirs.value_length[other]
    rows = np.flatnonzero(~differs)
    length = ours.length[own[rows]]
    left = ours.content[_bytes_of(ours.start[own[rows]], length)]
    right = theirs.content[_bytes_of(theirs.start[other[rows]], length)]
    differs[rows[np.unique(np.repeat(np.arange(rows.size), length)[left != right])]] = True
    return int(offset[int(differs.argmax())]) if differs.any() else None


def _read(log: CopyLog, low: int, high: int) -> Iterator[RawRecords]:
    headers = log.headers
    rows = np.flatnonzero((headers.last_offset >= low) & (headers.base_offset < high))
    for number in np.unique(log.file[rows]).tolist():
        here = rows[log.file[rows] == number]
        walk = log.walks[number]
        options = ReadOptions(
            from_position=int(headers.position[here[0]]),
            to_position=int(headers.position[here[-1]] + headers.size[here[-1]]),
            keep_content=False,
            sense=walk.sense,
        )
        for chunk in FileReader(walk.segment.path, options):
            yield chunk.records


def _record_bytes(records: RawRecords, low: int, high: int) -> RecordBytes:
    rows = np.flatnonzero((records.offset >= low) & (records.offset < high))
    key, value = records.key.take(rows), records.value.take(rows)
    # A record's key and value need not be neighbours: both are copied, alternating.
    spans = np.column_stack([key.start, value.start]).ravel()
    lengths = np.column_stack([_size(key), _size(value)]).ravel()
    ends = np.cumsum(lengths)
    return RecordBytes(
        offset=records.offset[rows],
        timestamp=records.timestamp[rows],
        key_length=key.length,
        value_length=value.length,
        start=(ends - lengths)[0::2],
        content=records.data[_bytes_of(spans, lengths)],
    )


def _joined(parts: list[RecordBytes]) -> RecordBytes:
    shifts = np.cumsum([0, *(part.content.size for part in parts)])
    nothing = np.empty(0, np.int64)
    columns = {
        name: np.concatenate([nothing, *(getattr(part, name) for part in parts)])
        for name in ("offset", "timestamp", "key_length", "value_length")
    }
    starts = [part.start + shift for part, shift in zip(parts, shifts[:-1], strict=True)]
    content = np.concatenate([np.empty(0, np.uint8), *(part.content for part in parts)])
    return RecordBytes(start=np.concatenate([nothing, *starts]), content=content, **columns)


def _size(spans: Spans) -> NDArray[np.int64]:
    return np.maximum(spans.length, 0)


def _bytes_of(start: NDArray[np.int64], length: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return the positions of all bytes of ranges, one range after the other."""
    before = np.cumsum(length) - length
    return np.repeat(start - before, length) + np.arange(int(length.sum()))


MAX_COMPARED_BYTES = 256 << 20
"""Records of so many bytes of one copy are held against another's; beyond, headers decide."""
_BATCHES_AT_ONCE = 4096


@dataclass(frozen=True)
class Parting:
    """Where a copy leaves another one's line.

    Attributes:
        offset: Up to here both tell the same; the end of the shorter one where it is a prefix.
        how: ``leader_epoch``, ``batch`` or ``record`` showed it; empty where nothing parts.
        compared_all: Every doubtful batch was looked into.
    """

    offset: int
    how: str = ""
    compared_all: bool = True


def parting(other: CopyLog, leader: CopyLog, max_bytes: int = MAX_COMPARED_BYTES) -> Parting:
    """Return where ``other`` leaves the line of ``leader``.

    Args:
        other: The copy that would be cut back.
        leader: The copy it would follow.
        max_bytes: Of doubtful batches whose records are compared.
    """
    ids = {other.partition.topic_id, leader.partition.topic_id} - {None}
    if len(ids) > 1:
        return Parting(0, OTHER_TOPIC)
    cut = _past_equals(other, leader, truncation_offset(other.epochs, leader.epochs))
    doubtful = _doubtful(other, leader, cut)
    by_batch = _first_other_epoch(other, leader, doubtful)
    by_record, compared_all = _first_other_record(other, leader, doubtful, max_bytes)
    offset = min(cut, by_batch, by_record)
    how = ""
    if offset < other.end_offset:
        how = {by_record: "record", by_batch: "batch", cut: "leader_epoch"}[offset]
    return Parting(offset, how, compared_all)


def _past_equals(other: CopyLog, leader: CopyLog, cut: int) -> int:
    """Return where batches really differ, from the offset on at which epochs part.

    Checksums cover times and contents: equal ones at equal offsets are the same batch, and an epoch
    that says otherwise is not to be believed (no checksum covers it).
    """
    rows = np.flatnonzero(other.headers.base_offset >= cut)
    near = near_batches(other.headers.take(rows), leader.headers)
    same = near.aligned
    if same.any():
        same = same & (leader.headers.crc[near.row] == other.headers.crc[rows])
    alike = rows.size if same.all() else int(same.argmin())
    return int(other.headers.last_offset[rows[alike - 1]]) + 1 if alike else cut


class Near(NamedTuple):
    """For each batch of one copy, what another copy has at its offsets.

    Attributes:
        row: The first batch there that does not end before this one begins; any if none.
        overlaps: It holds some of the same offsets.
        aligned: It has the same first and last offset.
        equal: It is the same batch, as far as headers tell.
    """

    row: NDArray[np.int64]
    overlaps: NDArray[np.bool_]
    aligned: NDArray[np.bool_]
    equal: NDArray[np.bool_]


def near_batches(ours: Headers, theirs: Headers) -> Near:
    """Find what one copy has where another has its batches.

    Args:
        ours: Batches, ascending.
        theirs: Likewise.
    """
    if not len(theirs):
        nowhere = np.zeros(len(ours), np.bool_)
        return Near(np.zeros(len(ours), np.int64), nowhere, nowhere, nowhere)
    found = np.searchsorted(theirs.last_offset, ours.base_offset)
    row = np.minimum(found, len(theirs) - 1)
    overlaps = (found < len(theirs)) & (theirs.base_offset[row] <= ours.last_offset)
    aligned = overlaps & (theirs.base_offset[row] == ours.base_offset)
    aligned &= theirs.last_offset[row] == ours.last_offset
    equal = aligned & (theirs.crc[row] == ours.crc) & (theirs.count[row] == ours.count)
    equal &= theirs.leader_epoch[row] == ours.leader_epoch
    equal &= theirs.size[row] == ours.size
    return Near(row, overlaps, aligned, equal)


@dataclass(frozen=True)
class _Doubtful:
    """Batches of one copy, ascending, and those of the other at the same offsets."""

    own: NDArray[np.int64]
    twin: NDArray[np.int64]
    """For each of ``own`` the other's batch with the same base and last offset, or -1."""


def _doubtful(other: CopyLog, leader: CopyLog, cut: int) -> _Doubtful:
    """Return batches below ``cut`` that overlap one of the leader's and are not equal to it."""
    ours, theirs = other.headers, leader.headers
    rows = np.flatnonzero(ours.base_offset < cut)
    if not rows.size or not len(theirs):
        return _Doubtful(rows[:0], rows[:0])
    near = near_batches(ours.take(rows), theirs)
    chosen = near.overlaps & ~near.equal
    return _Doubtful(rows[chosen], np.where(near.aligned, near.row, -1)[chosen])


def _first_other_epoch(other: CopyLog, leader: CopyLog, doubtful: _Doubtful) -> int:
    """Return the first offset at which two batches of different epochs begin."""
    own, twin = doubtful.own[doubtful.twin >= 0], doubtful.twin[doubtful.twin >= 0]
    epochs, others = other.headers.leader_epoch[own], leader.headers.leader_epoch[twin]
    differs = (epochs != others) & (epochs != NO_EPOCH) & (others != NO_EPOCH)
    differs &= other.headers.crc[own] != leader.headers.crc[twin]
    if not differs.any():
        return max(other.end_offset, leader.end_offset)
    return int(other.headers.base_offset[own[int(differs.argmax())]])


def _first_other_record(
    other: CopyLog, leader: CopyLog, doubtful: _Doubtful, max_bytes: int
) -> tuple[int, bool]:
    """Return the first offset where both have a record and not the same; whether all were read."""
    nowhere = max(other.end_offset, leader.end_offset)
    own = doubtful.own
    if not own.size:
        return nowhere, True
    within = np.cumsum(other.headers.size[own]) <= max_bytes
    headers = other.headers
    for first, end in runs_of(own[within]):
        low, high = int(headers.base_offset[first]), int(headers.last_offset[end - 1]) + 1
        ours = records_between(other, low, high)
        theirs = records_between(leader, low, high)
        found = first_difference(ours, theirs)
        if found is not None:
            return found, True
    return nowhere, bool(within.all())


def runs_of(
    rows: NDArray[np.int64], longest: int | None = _BATCHES_AT_ONCE
) -> list[tuple[int, int]]:
    """Return (first, end) of the runs of consecutive numbers, cut where they get too long."""
    if not rows.size:
        return []
    breaks = np.diff(rows) != 1
    if longest is not None:
        breaks |= np.arange(1, rows.size) % longest == 0
    at = np.flatnonzero(breaks)
    firsts = rows[np.concatenate([[0], at + 1])]
    ends = rows[np.concatenate([at, [rows.size - 1]])] + 1
    return list(zip(firsts.tolist(), ends.tolist(), strict=True))
