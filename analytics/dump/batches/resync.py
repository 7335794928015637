"""Finding the next batch where the chain of lengths is broken.

A position is tried where the header makes sense, and taken where the checksum agrees. The work
stays proportional to the bytes: every byte is looked at once, by numpy, and the bytes summed over
in vain are bounded by those looked at.
"""

from __future__ import annotations

from dataclasses import dataclass
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
    from collections.abc import Iterator

    from numpy.typing import NDArray

    from analytics.dump.batches.log_bounds import LogSense
    from analytics.dump.files.storage import ByteSource

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
