"""What lies between the start offset of a share partition and the last offset with a stored state.

The leader keeps this window in memory (``SharePartition``) and lets no more records be handed out
once it spans ``group.share.partition.max.record.locks`` offsets. Offsets in it are acknowledged or
archived (finally dealt with), available or archiving, or they have no stored state: they are handed
out at the moment, or were not fetched yet. Which of the two no record tells: locks are kept in
memory alone.

A write names the start offset from before its own ranges count. So the stored start offset may lie
below ranges that are finally dealt with; the next leader moves it past them, and so do we: the
*next offset* is the first that is not finally dealt with.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np

from analytics.replay.share.share_records import (
    ACKNOWLEDGED,
    ACQUIRED,
    ARCHIVED,
    ARCHIVING,
    AVAILABLE,
)

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from analytics.replay.share.share_ranges import Ranges

    Numbers = NDArray[np.int64]

NONE: Final = -1
"""An offset, a state or a count that there is not."""

NOT_STORED: Final = 5
"""Beside the delivery states: handed out at the moment or not fetched yet, no record tells."""

STATE_NAMES: Final = {
    AVAILABLE: "AVAILABLE",
    ACQUIRED: "ACQUIRED",
    ACKNOWLEDGED: "ACKNOWLEDGED",
    ARCHIVING: "ARCHIVING",
    ARCHIVED: "ARCHIVED",
    NOT_STORED: "NOT_STORED",
}
UNKNOWN: Final = "UNKNOWN"
"""A delivery state that Kafka does not know: leaders refuse to load it."""


def state_name(state: int) -> str:
    """Return a delivery state in Kafka's words, `UNKNOWN` where Kafka has none."""
    return STATE_NAMES.get(state, UNKNOWN)


@dataclass(frozen=True)
class Windows:
    """The window of each share partition: one place for each.

    Attributes:
        last: The last offset with a stored state; one below the start offset where there is none.
        next: The first offset that is not finally dealt with; -1 where there is no start offset.
        counts: Offsets from the start offset on by delivery state; `NOT_STORED` are those between
            stored ranges.
        blocking_first: First offset of what comes at the next offset, where something is stored
            there or beyond; else -1.
        blocking_last: Its last offset.
        blocking_state: Its delivery state, or `NOT_STORED`.
        blocking_count: Its delivery count; -1 where none is stored.
    """

    last: Numbers
    next: Numbers
    counts: NDArray[np.int64]
    blocking_first: Numbers
    blocking_last: Numbers
    blocking_state: Numbers
    blocking_count: Numbers

    @property
    def done(self) -> Numbers:
        """Offsets from the start offset on that are finally dealt with."""
        found: Numbers = self.counts[:, ACKNOWLEDGED] + self.counts[:, ARCHIVED]
        return found

    @property
    def in_flight(self) -> Numbers:
        """Offsets of the window that are not."""
        found: Numbers = self.counts.sum(axis=1) - self.done
        return found

    @property
    def locked(self) -> Numbers:
        """Offsets that the window spans from the next offset on: what the limit is about.

        (``SharePartition.numInFlightRecords``.)
        """
        return np.where(self.next >= 0, np.maximum(self.last - self.next + 1, 0), 0)


def windows(start: Numbers, ranges: Ranges) -> Windows:
    """Return the window of each share partition.

    Args:
        start: Its start offset; -1 where there is none.
        ranges: Its stored state: ascending, not overlapping, none below the start offset; `key` is
            its place in ``start``.
    """
    counts = _counts(start.size, ranges)
    last = np.where(start >= 0, start - 1, NONE)
    np.maximum.at(last, ranges.key, ranges.last)
    counts[:, NOT_STORED] = np.where(start >= 0, last - start + 1 - counts.sum(axis=1), 0)
    leads = _leading(start, ranges)
    following = start.copy()
    np.maximum.at(following, ranges.key[leads], ranges.last[leads] + 1)
    following = np.where(start >= 0, following, NONE)
    place = np.full(start.size, ranges.key.size)
    np.minimum.at(place, ranges.key[~leads], np.flatnonzero(~leads))
    blocks = (place < ranges.key.size) & (start >= 0)
    # A place behind the last one is never taken: it stands for nothing that blocks.
    first = np.append(ranges.first, NONE)[place]
    is_gap = blocks & (first > following)
    until = np.where(is_gap, first - 1, np.append(ranges.last, NONE)[place])
    state = np.append(ranges.state.astype(np.int64), NONE)[place]
    count = np.append(ranges.count.astype(np.int64), NONE)[place]
    return Windows(
        last=last,
        next=following,
        counts=counts,
        blocking_first=np.where(blocks, following, NONE),
        blocking_last=np.where(blocks, until, NONE),
        blocking_state=np.where(blocks, np.where(is_gap, NOT_STORED, state), NONE),
        blocking_count=np.where(blocks & ~is_gap, count, NONE),
    )


def is_done(state: NDArray[np.int8]) -> NDArray[np.bool_]:
    """Return whether a delivery state is final (``SharePartition.isStateTerminal``)."""
    found: NDArray[np.bool_] = (state == ACKNOWLEDGED) | (state == ARCHIVED)
    return found


def _counts(places: int, ranges: Ranges) -> NDArray[np.int64]:
    known = (ranges.state >= AVAILABLE) & (ranges.state <= ARCHIVED)
    chosen, states = ranges.where(known), NOT_STORED + 1
    place = chosen.key * states + chosen.state
    return chosen.counted(place, places * states).reshape(places, states)


def _leading(start: Numbers, ranges: Ranges) -> NDArray[np.bool_]:
    """Return which ranges follow the start offset without a gap, all of them finally dealt with."""
    key = ranges.key
    if not key.size:
        return np.zeros(0, np.bool_)
    is_first = np.ones(key.size, np.bool_)
    is_first[1:] = key[1:] != key[:-1]
    expected = np.where(is_first, start[key], np.concatenate([[NONE], ranges.last[:-1] + 1]))
    holds = is_done(ranges.state) & (ranges.first <= expected) & (start[key] >= 0)
    broken = np.cumsum(~holds)
    before = np.where(is_first, broken - ~holds, 0)
    found: NDArray[np.bool_] = broken == np.maximum.accumulate(before)
    return found
