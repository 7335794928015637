"""A segment's `.timeindex`: which timestamps its records had reached, and at which offset.

Each entry says that up to its offset no record is newer than its timestamp, and that the record at
the offset, or one of its batch, is that old (``TimeIndex.maybeAppend``). Kafka adds one every few
kilobytes, where the timestamp is a new one, and a last one when the segment is closed. The file of
the segment that is written is as long as it may become, and ends in zeros.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

import numpy as np

from analytics.calendar_numbers import are_times
from analytics.dump.files.byte_source import ByteSource
from analytics.dump.files.storage import is_uri
from analytics.epoch_times import LAST_MS

if TYPE_CHECKING:
    from numpy.typing import NDArray

SUFFIX: Final = ".timeindex"
_ENTRY: Final = np.dtype([("timestamp", ">i8"), ("offset", ">i4")])
_READ_WHOLE: Final = 64 << 10
_POINTS: Final = 128
"""Of a longer index: so many entries, evenly spaced, tell when a segment was written."""


class IndexedTimes(NamedTuple):
    """Entries, ascending: timestamps in epoch milliseconds, and offsets."""

    timestamps: NDArray[np.int64]
    offsets: NDArray[np.int64]


def read_time_index(path: str, base_offset: int) -> IndexedTimes:
    """Return entries of an index: all of a short one, some of a long one, the last one always.

    What does not ascend, or has a time that no calendar has, is no entry: what follows it is left
    out.

    Raises:
        InputUnreadableError: The file cannot be read.
    """
    with ByteSource(path) as source:
        count = source.size // _ENTRY.itemsize
        # Over a network one long read costs less than many short ones.
        if source.size <= _READ_WHOLE or is_uri(path):
            entries = _entries(source, 0, count)
        else:
            written = _entry_count(source, count)
            wanted = np.unique(np.linspace(0, max(written - 1, 0), _POINTS).astype(np.int64))
            parts = [_entries(source, place, 1) for place in wanted.tolist()]
            entries = np.concatenate(parts)
    timestamps, relative = entries["timestamp"].astype(np.int64), entries["offset"].astype(np.int64)
    ascends = (np.diff(timestamps) > 0) & (np.diff(relative) > 0)
    ascends &= are_times(timestamps[1:])
    is_first = len(timestamps) > 0 and bool(0 < timestamps[0] <= LAST_MS and relative[0] >= 0)
    kept = int(np.argmin(np.r_[ascends, False])) + 1 if is_first else 0
    return IndexedTimes(timestamps[:kept], relative[:kept] + base_offset)


def _entries(
    source: ByteSource, first: int, count: int
) -> np.ndarray[tuple[int], np.dtype[np.void]]:
    size = _ENTRY.itemsize
    return np.frombuffer(source.bytes(first * size, count * size), _ENTRY)


def _entry_count(source: ByteSource, count: int) -> int:
    """Return how many entries stand before the zeros at the end."""
    low, high = 0, count
    while low < high:
        middle = (low + high) // 2
        if _entries(source, middle, 1)["timestamp"][0] > 0:
            low = middle + 1
        else:
            high = middle
    return low
