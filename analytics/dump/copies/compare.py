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

from analytics.dump.copies.epochs import NO_EPOCH, truncation_offset
from analytics.dump.copies.record_bytes import first_difference, records_between
from analytics.dump.files.model import OTHER_TOPIC

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from analytics.dump.batches.header_columns import Headers
    from analytics.dump.batches.walks import CopyLog

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
