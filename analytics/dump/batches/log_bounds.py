"""What a log can hold, and where its next batch is when the chain of lengths is broken."""

from __future__ import annotations

from bisect import bisect_left
from dataclasses import dataclass
from itertools import accumulate
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import numpy as np

from analytics.dump.batches.batch_bytes import checksum_in_file
from analytics.dump.batches.headers import (
    BATCH_HEADER,
    LOG_OVERHEAD,
    MAGIC_AT,
    SHORTEST_HEADER,
    SMALLEST,
    gather,
    gather_v2,
)
from analytics.dump.records.raw_records import PADDING

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from numpy.typing import NDArray

    from analytics.dump.batches.headers import Batches
    from analytics.dump.files.storage import ByteSource

# What the checksum does not cover, offsets and leader epochs, judged by what a log can hold.
#
# Base offsets grow strictly along a log and leader epochs never fall (``UnifiedLog.append``,
# ``LeaderEpochFileCache``). Where that is broken, the fewest batches that explain it are to
# blame; between equals, those whose removal leaves offsets without holes.

MAX_SEGMENT_OFFSETS: Final = 2**31
"""Offsets of a segment lie within this range from its base (``LogSegment.ensureOffsetInRange``),
but for those that releases without the patch for KAFKA-5413 merged beyond what an index can name
(KAFKA-6264)."""
HIGHEST_OFFSET: Final = 2**48
"""No log has come near."""
_FLIP_SHOWS_FROM: Final = 64
"""A jump of one bit's worth, at least this far, at the end of a log without holes is a flipped bit
rather than lost batches."""


@dataclass(frozen=True)
class LogSense:
    """What is known of the log around a segment.

    Attributes:
        base_offset: The segment's, from its file name.
        end_offset: The next segment's base offset.
        complete_from: From this offset on there are no holes.
        leader_epochs: (epoch, first offset) as the broker noted them, ascending.
    """

    base_offset: int | None = None
    end_offset: int | None = None
    complete_from: int | None = None
    leader_epochs: Sequence[tuple[int, int]] = ()

    @property
    def low(self) -> int:
        """Lowest offset that a batch may begin with."""
        return self.base_offset or 0

    @property
    def high(self) -> int:
        """All offsets are below this."""
        return HIGHEST_OFFSET if self.end_offset is None else self.end_offset

    @property
    def far(self) -> int:
        """Offsets from here on are true in an overflowing segment only, or where a bit flipped."""
        if self.end_offset is not None or self.base_offset is None:
            return self.high
        return self.low + MAX_SEGMENT_OFFSETS


def implausible_offsets(batches: Batches, sense: LogSense) -> NDArray[np.bool_]:
    """Mark the batches whose offsets cannot be true.

    Args:
        batches: In file order.
        sense: What is known of the log around them.
    """
    base, last = batches.base_offset, batches.last_offset
    wrong = (base < sense.low) | (last < base) | (last >= sense.high)
    rows = np.flatnonzero(~wrong)
    wrong[rows] = ~_ascending(base[rows], last[rows], sense.low)
    _blame_flipped_end(batches, np.flatnonzero(~wrong), sense, wrong)
    _blame_far_end(batches, np.flatnonzero(~wrong), sense, wrong)
    return wrong


def implausible_epochs(batches: Batches, sense: LogSense) -> NDArray[np.bool_]:
    """Mark the batches whose leader epoch cannot be true; -1 (none) always can.

    Args:
        batches: In file order, with plausible offsets.
        sense: What is known of the log around them.
    """
    epoch = batches.leader_epoch.astype(np.int64)
    wrong = epoch < -1
    if sense.leader_epochs:
        wrong |= (epoch >= 0) & _contradicts(epoch, batches.base_offset, sense.leader_epochs)
    rows = np.flatnonzero(~wrong & (epoch >= 0))
    # Equal epochs may follow each other: an interval that ends just before it begins.
    doubled = epoch[rows] * 2
    wrong[rows] = ~_ascending(doubled + 1, doubled, None)
    return wrong


def _contradicts(
    epoch: NDArray[np.int64], base: NDArray[np.int64], noted: Sequence[tuple[int, int]]
) -> NDArray[np.bool_]:
    epochs = np.array([each[0] for each in noted], np.int64)
    starts = np.array([each[1] for each in noted], np.int64)
    place = np.searchsorted(starts, base, "right") - 1
    # Before the first note nothing is known: brokers forget epochs below the log start.
    contradicted: NDArray[np.bool_] = (place >= 0) & (epochs[np.maximum(place, 0)] != epoch)
    return contradicted


def _blame_flipped_end(
    batches: Batches, rows: NDArray[np.int64], sense: LogSense, wrong: NDArray[np.bool_]
) -> None:
    """At the end of a log nothing follows that a wrong offset could collide with."""
    if sense.complete_from is None or rows.size < 2:
        return
    previous, end = int(rows[-2]), int(rows[-1])
    expected = int(batches.last_offset[previous]) + 1
    found = int(batches.base_offset[end])
    adjacent = batches.position[previous] + batches.size[previous] == batches.position[end]
    one_bit = (found ^ expected).bit_count() == 1
    if (
        adjacent
        and one_bit
        and expected >= sense.complete_from
        and found - expected >= _FLIP_SHOWS_FROM
    ):
        wrong[end] = True


def _blame_far_end(
    batches: Batches, rows: NDArray[np.int64], sense: LogSense, wrong: NDArray[np.bool_]
) -> None:
    """One batch alone so far off that no index can name it: a wrong offset, or an overflow.

    Two that agree are an overflow: no damage hits both alike. One is an overflow, too, unless the
    log has no holes there, or one bit turned makes it the batch that comes next.
    """
    if not rows.size or batches.last_offset[rows[-1]] < sense.far:
        return
    if rows.size > 1 and batches.last_offset[rows[-2]] >= sense.far:
        return
    end = int(rows[-1])
    expected = int(batches.last_offset[rows[-2]]) + 1 if rows.size > 1 else sense.low
    one_bit = (int(batches.base_offset[end]) ^ expected).bit_count() == 1
    has_no_holes = sense.complete_from is not None and expected >= sense.complete_from
    wrong[end] = one_bit or has_no_holes


def _ascending(
    base: NDArray[np.int64], last: NDArray[np.int64], floor: int | None
) -> NDArray[np.bool_]:
    """Mark the members of a longest ascending chain of intervals."""
    keep = np.ones(base.size, np.bool_)
    if base.size < 2 or (base[1:] > last[:-1]).all():
        return keep
    # What agrees with everything before and after it is in every longest chain: the search falls
    # apart into the short runs between such batches.
    before = np.maximum.accumulate(last)[:-1]
    after = np.minimum.accumulate(base[::-1])[::-1][1:]
    agrees = np.ones(base.size, np.bool_)
    agrees[1:] &= before < base[1:]
    agrees[:-1] &= after > last[:-1]
    for start, end in _runs(~agrees):
        expected = int(last[start - 1]) + 1 if start else floor
        chosen = _longest_chain(base[start:end].tolist(), last[start:end].tolist(), expected)
        keep[start:end] = False
        keep[start + np.array(chosen, np.int64)] = True
    return keep


def _runs(marked: NDArray[np.bool_]) -> list[tuple[int, int]]:
    edges = np.flatnonzero(np.diff(np.concatenate([[False], marked, [False]]).astype(np.int8)))
    return list(zip(edges[0::2].tolist(), edges[1::2].tolist(), strict=True))


def _longest_chain(base: list[int], last: list[int], expected: int | None) -> list[int]:
    """Return the rows of a longest chain in which each interval begins after the one before.

    Of several, the one that at each step leaves no hole: the next interval begins at the offset
    expected, or the hole is as long as the intervals that are passed over.
    """
    ranks = _ranks(base, last)
    backward = _ranks([-each for each in reversed(last)], [-each for each in reversed(base)])
    length = max(ranks)
    levels: list[list[int]] = [[] for _ in range(length)]
    for row, rank in enumerate(ranks):
        if rank + backward[-1 - row] - 1 == length:
            levels[rank - 1].append(row)
    spans = [end - first + 1 for first, end in zip(base, last, strict=True)]
    offsets = list(accumulate(spans, initial=0))
    chain: list[int] = []
    for level in levels:
        previous = chain[-1] if chain else -1
        fitting = [
            row for row in level if row > previous and (previous < 0 or base[row] > last[previous])
        ]
        passed = [offsets[row] - offsets[previous + 1] for row in fitting]
        chain.append(_without_hole(fitting, base, expected, passed))
        expected = last[chain[-1]] + 1
    return chain


def _without_hole(
    fitting: list[int], base: list[int], expected: int | None, offsets_of_rows: list[int]
) -> int:
    if expected is not None:
        for row, offsets in zip(fitting, offsets_of_rows, strict=True):
            if base[row] - expected in {0, offsets}:
                return row
    return fitting[0]


def _ranks(base: list[int], last: list[int]) -> list[int]:
    """Length of the longest chain that ends at each interval (patience sorting)."""
    lowest_end: list[int] = []
    ranks = []
    for first, end in zip(base, last, strict=True):
        rank = bisect_left(lowest_end, first)
        if rank == len(lowest_end):
            lowest_end.append(end)
        elif end < lowest_end[rank]:
            lowest_end[rank] = end
        ranks.append(rank + 1)
    return ranks


# Finding the next batch where the chain of lengths is broken.
#
# A position is tried where the header makes sense, and taken where the checksum agrees. The work
# stays proportional to the bytes: every byte is looked at once, by numpy, and the bytes summed
# over in vain are bounded by those looked at.

_WINDOW: Final = 1 << 20
_FREE_BYTES: Final = 64 << 20
_BYTES_PER_BYTE: Final = 4
_PER_TRIAL: Final = 4096
"""Bytes that may be summed over in vain: some for free, and this many per byte looked at; a trial
costs as many as it sums over, and some for itself."""

_AT_ONCE: Final = 64
_MAX_CODEC: Final = 4
_KNOWN_ATTRIBUTES: Final = 0x7F
_LEGACY_ATTRIBUTES: Final = (0x07, 0x0F)
_LENGTH: Final = np.dtype(">i4")
_ENTRY: Final = np.dtype([("offset", ">i8"), ("size", ">i4")])


class Entry(NamedTuple):
    """Where an entry lies in the file, and its format."""

    position: int
    size: int
    magic: int

    @property
    def end(self) -> int:
        """First byte after it."""
        return self.position + self.size


@dataclass(frozen=True)
class _Candidates:
    position: NDArray[np.int64]
    size: NDArray[np.int64]
    magic: NDArray[np.uint8]

    def take(self, rows: NDArray[Any] | slice) -> _Candidates:
        return _Candidates(self.position[rows], self.size[rows], self.magic[rows])


def _no_candidates() -> _Candidates:
    none = np.empty(0, np.int64)
    return _Candidates(none, none, np.empty(0, np.uint8))


class BatchFinder:
    """Finds entries that check in a stretch of a file."""

    def __init__(self, source: ByteSource, start: int, stop: int, sense: LogSense) -> None:
        self._source = source
        self._start, self._stop = start, stop
        self._low, self._high = sense.low, sense.high
        self._window = -1
        self._found = _no_candidates()
        self._allowance = _FREE_BYTES

    def can_afford(self, size: int) -> bool:
        """Whether so many bytes may still be summed over in vain."""
        return size + _PER_TRIAL <= self._allowance

    def checks(self, entry: Entry) -> bool:
        """Whether an entry that lies in the file has the right checksum; a failure is paid for."""
        at = entry.position + (17 if entry.magic == 2 else LOG_OVERHEAD)
        stored = int.from_bytes(self._source.bytes(at, 4))
        if checksum_in_file(self._source, *entry) == stored:
            return True
        self._allowance -= entry.size + _PER_TRIAL
        return False

    def first(self, low: int, high: int, unchecked: NDArray[np.int64] | None = None) -> int | None:
        """Return where the first entry begins, from ``low`` to before ``high``, that checks.

        Args:
            low: First position tried.
            high: End of the positions tried; the entry may go on beyond it.
            unchecked: Positions known not to check, ascending.
        """
        position = low
        while position < high:
            window = (position - self._start) // _WINDOW
            end = min(self._start + (window + 1) * _WINDOW, high)
            for entry in self._between(window, position, end, unchecked):
                if self.can_afford(entry.size) and self.checks(entry):
                    return entry.position
            position = end
        return None

    def _between(
        self, window: int, low: int, high: int, unchecked: NDArray[np.int64] | None
    ) -> Iterator[Entry]:
        """Yield the candidates of a window, from ``low`` to before ``high``."""
        found = self._candidates(window)
        first, end = np.searchsorted(found.position, [low, high]).tolist()
        # Most searches end with the first few: no more are looked at than needed.
        while first < end:
            some = found.take(slice(first, min(first + _AT_ONCE, end)))
            first += _AT_ONCE
            if unchecked is not None:
                some = some.take(~np.isin(some.position, unchecked))
            columns = (some.position.tolist(), some.size.tolist(), some.magic.tolist())
            yield from map(Entry, *columns)

    def _candidates(self, window: int) -> _Candidates:
        if window != self._window:
            start = self._start + window * _WINDOW
            end = min(start + _WINDOW + BATCH_HEADER, self._stop)
            data = self._source.array(start, end - start)
            self._found = self._plausible(data, start, min(_WINDOW, end - start))
            self._window = window
            self._allowance += _BYTES_PER_BYTE * (end - start)
        return self._found

    def _plausible(self, data: NDArray[np.uint8], start: int, size: int) -> _Candidates:
        size = min(size, self._stop - start - SHORTEST_HEADER + 1)
        if size <= 0:
            return _no_candidates()
        # The cheapest tests first, on whole stretches of bytes: format, and high bytes of the
        # offset and of the size; no size is zero.
        mask = data[MAGIC_AT : MAGIC_AT + size] <= 2
        mask &= data[:size] <= self._high >> 56
        mask &= data[1 : 1 + size] <= min(self._high >> 48, 0xFF)
        mask &= data[8 : 8 + size] <= min(self._stop >> 24, 0x7F)
        mask &= (data[9 : 9 + size] | data[10 : 10 + size] | data[11 : 11 + size]) != 0
        at = np.flatnonzero(mask)
        magic = data[at + MAGIC_AT]
        entry = gather(data, at, _ENTRY)
        length = entry["size"].astype(np.int64) + LOG_OVERHEAD
        offset = entry["offset"].astype(np.int64)
        good = (length >= SMALLEST[magic]) & (at + start + length <= self._stop)
        good &= (offset >= self._low) & (offset < self._high)
        at, magic, length = at[good], magic[good], length[good]
        sound = np.empty(at.size, np.bool_)
        new = magic == 2
        sound[new] = _sound_batches(data, at[new])
        for kind in (0, 1):
            rows = np.flatnonzero(magic == kind)
            sound[rows] = _sound_messages(data, at[rows], length[rows], kind)
        return _Candidates(at + start, length, magic).take(sound)


def _sound_batches(data: NDArray[np.uint8], at: NDArray[np.int64]) -> NDArray[np.bool_]:
    header = gather_v2(data, at)
    attributes = header["attributes"]
    count, delta = header["count"], header["last_offset_delta"]
    good = (attributes & ~np.int16(_KNOWN_ATTRIBUTES)) == 0
    good &= (attributes & 0x07) <= _MAX_CODEC
    good &= (delta >= 0) & (count >= 0) & (count - 1 <= delta)
    for name in ("producer_id", "producer_epoch", "base_sequence"):
        good &= header[name] >= -1
    result: NDArray[np.bool_] = np.asarray(good, np.bool_)
    return result


def _sound_messages(
    data: NDArray[np.uint8],
    at: NDArray[np.int64],
    length: NDArray[np.int64],
    magic: int,
) -> NDArray[np.bool_]:
    """Key and value lengths add up to the message's size exactly."""
    attributes = data[at + MAGIC_AT + 1]
    good: NDArray[np.bool_] = (attributes & ~np.uint8(_LEGACY_ATTRIBUTES[magic])) == 0
    good &= (attributes & 0x07) < _MAX_CODEC
    key = gather(data, at + (26 if magic else 18), _LENGTH).astype(np.int64)
    good &= (key >= -1) & (np.maximum(key, 0) <= length - SMALLEST[magic])
    rows = np.flatnonzero(good)
    value_at = at[rows] + (30 if magic else 22) + np.maximum(key[rows], 0)
    # A value beyond this window is left to the checksum.
    near = value_at + 4 <= data.size - PADDING
    rows = rows[near]
    value = gather(data, value_at[near], _LENGTH).astype(np.int64)
    rest = length[rows] - SMALLEST[magic] - np.maximum(key[rows], 0)
    good[rows] = (value >= -1) & (np.maximum(value, 0) == rest)
    return good
