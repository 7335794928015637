"""Since when the start offset of a share partition is where it is, read off the log.

The stored start offset lags: a write names it from before its own ranges count. So what is asked is
since when nothing below the *next offset* was left to deal with. In a run what is finally dealt
with stays so, and start offsets only go forward: with ``done(o)`` the first record after which an
offset ``o`` is acknowledged or archived, that was so from the first record on that comes at or
after ``done(o)`` of all ``o`` from the start offset then in force up to the next offset.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from analytics.questions.share.state_log.window import is_done
from analytics.replay.share.share_ranges import Ranges, greatest
from analytics.replay.share.share_records import SNAPSHOT

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from analytics.questions.share.state_log.share_log import ShareLog

    Numbers = NDArray[np.int64]

NO_RECORD = -1
BEYOND_LOG = (1 << 31) - 1
"""A place after every other in a log; small enough to be added to packed numbers."""


@dataclass(frozen=True)
class Progress:
    """What the log tells of each share partition: records by their place in it, -1 for none.

    Attributes:
        first: The first record of the run that is in force.
        moved: The first record after which nothing below the next offset was left to deal with.
        beyond: The first record that stores a range at the next offset or beyond.
        is_told: Whether the run begins in the log: with an initialisation, or after another run.
            Else what is true of its first record may have been so before.
    """

    first: Numbers
    moved: Numbers
    beyond: Numbers
    is_told: NDArray[np.bool_]


def progress(log: ShareLog, following: Numbers) -> Progress:
    """Return since when start offsets are where they are.

    Args:
        log: The records up to the instant.
        following: By share partition of the log, its next offset at the instant; -1 where none.
    """
    shares = log.shares.num_rows
    is_current, first = current_records(log)
    places = np.flatnonzero(is_current)
    of_range = log.share[log.ranges.key]
    current = is_current[log.ranges.key]
    target = following[of_range]
    reaches = current & (target >= 0) & (log.ranges.last >= target)
    return Progress(
        first,
        _moved(log, following, places, of_range, current & (target >= 0)),
        _first_of(shares, of_range[reaches], log.ranges.key[reaches]),
        _is_told(log, first),
    )


def current_records(log: ShareLog) -> tuple[NDArray[np.bool_], Numbers]:
    """Return which records are of the run in force, and by share partition the first of them."""
    shares = log.shares.num_rows
    last = np.full(shares, NO_RECORD, np.int64)
    np.maximum.at(last, log.share, np.arange(log.share.size))
    is_current = log.run == log.run[last][log.share]
    first = np.full(shares, NO_RECORD, np.int64)
    places = np.flatnonzero(is_current)[::-1]
    first[log.share[places]] = places
    return is_current, first


def _first_of(shares: int, share: Numbers, record: Numbers) -> Numbers:
    found = np.full(shares, np.iinfo(np.int64).max)
    np.minimum.at(found, share, record)
    return np.where(found == np.iinfo(np.int64).max, NO_RECORD, found)


def _is_told(log: ShareLog, first: Numbers) -> NDArray[np.bool_]:
    """Return whether a run begins in the log."""
    if not log.share.size:
        return np.zeros(first.size, np.bool_)
    follows = ~log.is_first[first]
    starts = (log.kind == SNAPSHOT) & (log.snapshot_epoch == 0)
    found: NDArray[np.bool_] = (follows | starts[first]) & (first != NO_RECORD)
    return found


def _moved(
    log: ShareLog,
    following: Numbers,
    places: Numbers,
    of_range: Numbers,
    counts: NDArray[np.bool_],
) -> Numbers:
    """Return the first record of the run after which all below the next offset was dealt with."""
    target = following[of_range]
    ranges = log.ranges
    chosen = counts & is_done(ranges.state) & (ranges.first < target)
    pieces = first_covers(
        ranges.where(chosen), of_range[chosen], np.minimum(ranges.last, target - 1)[chosen]
    )
    found = _latest_from_above(pieces, following)
    return _first_that_holds(log, following, places, pieces, found)


@dataclass(frozen=True)
class Covers:
    """By share partition and offset, the first record with a range that covers the offset.

    ``range`` is that range's place among those given.
    """

    share: Numbers
    first: Numbers
    last: Numbers
    record: Numbers
    range: Numbers


def first_covers(ranges: Ranges, share: Numbers, last: Numbers | None = None) -> Covers:
    """Return for every offset the first record that covers it.

    Args:
        ranges: By record, ascending.
        share: The share partition of each.
        last: Their last offsets, where they shall end earlier.
    """
    place = np.arange(ranges.key.size)
    until = ranges.last if last is None else last
    found = greatest(share, ranges.first, until, (-place).astype(np.int32))
    which = -found.rank.astype(np.int64)
    return Covers(found.key, found.first, found.last, ranges.key[which], which)


def _latest_from_above(pieces: Covers, following: Numbers) -> Numbers:
    """Return of each piece the latest first record of all offsets from it up to the next offset.

    `BEYOND_LOG` where one of these offsets is in no range.
    """
    if not pieces.share.size:
        return pieces.record
    above = np.append(pieces.first[1:], NO_RECORD)
    is_last = np.append(pieces.share[1:], NO_RECORD) != pieces.share
    above = np.where(is_last, following[pieces.share], above)
    record = np.where(pieces.last + 1 == above, pieces.record, BEYOND_LOG)
    # Read backwards, each share partition outranks the one before: its own pieces alone are seen.
    base = (pieces.share.max() - pieces.share) * (BEYOND_LOG + 1)
    running: Numbers = np.maximum.accumulate((base + record)[::-1])[::-1] - base
    return running


def _first_that_holds(
    log: ShareLog, following: Numbers, places: Numbers, pieces: Covers, latest: Numbers
) -> Numbers:
    """Return the first record at or after all that its start offset still leaves to deal with."""
    share, start = log.share[places], log.start[places]
    target = following[share]
    at = _rightmost(pieces.share, pieces.first, share, start)
    covered = np.full(places.size, BEYOND_LOG)
    held = np.flatnonzero(at >= 0)
    held = held[pieces.last[at[held]] >= start[held]]
    covered[held] = latest[at[held]]
    need = np.where(start >= target, NO_RECORD, covered)
    good = (target >= 0) & (start >= 0) & (need <= places)
    return _first_of(following.size, share[good], places[good])


def _rightmost(keys: Numbers, values: Numbers, key: Numbers, value: Numbers) -> Numbers:
    """Return the last place of (key, value) pairs, in order, that is not above each pair asked for.

    -1 where that place is of another key.
    """
    if not keys.size:
        return np.full(key.size, -1)
    every = np.concatenate([keys, key])
    amounts = np.concatenate([values, value])
    asked = np.concatenate([np.zeros(keys.size, np.int64), np.ones(key.size, np.int64)])
    order = np.lexsort((asked, amounts, every))
    seen = np.cumsum(asked[order] == 0) - 1
    found = np.empty(every.size, np.int64)
    found[order] = seen
    place = found[keys.size :]
    return np.where((place >= 0) & (keys[np.maximum(place, 0)] == key), place, -1)
