"""The combiner of share state over whole columns (Kafka's ``PersisterStateBatchCombiner``).

For every offset the range with the greatest delivery count wins, among equals the one with the
greatest delivery state; which came first does not matter. That is a semilattice: however many
ranges a key collected, they are merged at once. All boundaries of all keys are sorted once, which
cuts the offsets into elementary pieces; each range then paints the pieces it covers with its rank,
and the greatest rank stays.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

_INT64 = np.iinfo(np.int64)
_UNPAINTED = np.int32(np.iinfo(np.int32).min)
# Offsets without a bound: below this nothing is clipped.
UNBOUNDED = _INT64.min


@dataclass(frozen=True)
class Ranges:
    """Ranges of offsets in a delivery state; ``last`` is included.

    ``key`` is a dense number of the share-partition, ``state`` int8 and ``count`` int16 as stored.
    """

    key: NDArray[np.int64]
    first: NDArray[np.int64]
    last: NDArray[np.int64]
    state: NDArray[np.int8]
    count: NDArray[np.int16]

    @property
    def sizes(self) -> NDArray[np.uint64]:
        """How many offsets each has: 2^63 of them are more than a number with a sign holds."""
        return (self.last - self.first).astype(np.uint64) + np.uint64(1)

    def counted(self, place: NDArray[np.int64], places: int) -> NDArray[np.int64]:
        """Return how many offsets lie in each place; more than an int64 holds is the largest.

        Args:
            place: Of each range; those of one place do not overlap.
            places: How many there are.
        """
        counts = np.zeros(places, np.uint64)
        np.add.at(counts, place, self.sizes)
        return np.minimum(counts, np.uint64(_INT64.max)).astype(np.int64)

    def where(self, chosen: NDArray[np.bool_]) -> Ranges:
        """Some of the ranges."""
        if chosen.all():
            return self
        return Ranges(
            self.key[chosen],
            self.first[chosen],
            self.last[chosen],
            self.state[chosen],
            self.count[chosen],
        )


@dataclass(frozen=True)
class RankedRanges:
    """Ranges of offsets by key, ascending and not overlapping; ``last`` is included."""

    key: NDArray[np.int64]
    first: NDArray[np.int64]
    last: NDArray[np.int64]
    rank: NDArray[np.int32]


def merged(ranges: Ranges) -> Ranges:
    """Merge the ranges of each key: ascending, not overlapping, neighbours that differ.

    A range that ends before it begins covers no offset and is gone.
    """
    rank = ranges.count.astype(np.int32) << 8 | (ranges.state.astype(np.int32) + 128)
    found = greatest(ranges.key, ranges.first, ranges.last, rank)
    return Ranges(
        key=found.key,
        first=found.first,
        last=found.last,
        state=((found.rank & 0xFF) - 128).astype(np.int8),
        count=(found.rank >> 8).astype(np.int16),
    )


def greatest(
    key: NDArray[np.int64],
    first: NDArray[np.int64],
    last: NDArray[np.int64],
    rank: NDArray[np.int32],
) -> RankedRanges:
    """Return for every offset of each key the greatest rank of the ranges that cover it.

    Args:
        key: A dense number for each range.
        first: Its first offset.
        last: Its last offset, included; a range that ends before it begins covers nothing.
        rank: What is compared; the least number of 32 bits is not one.
    """
    covers = last >= first
    if not covers.all():
        key, first, last, rank = key[covers], first[covers], last[covers], rank[covers]
    if not key.size:
        return RankedRanges(key, first, last, rank)
    # Piece i of a key is what lies after boundary i up to and with boundary i + 1: a range from
    # first to last covers what lies after first - 1, and no sum leaves the 64 bits.
    before = np.maximum(first, _INT64.min + 1) - 1
    key, bound, index = _boundaries(np.concatenate([key, key]), np.concatenate([before, last]))
    start, end = np.split(index, 2)
    return _runs(key, bound, _painted(start, end, rank, bound.size))


def _boundaries(
    key: NDArray[np.int64], bound: NDArray[np.int64]
) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]:
    """Distinct boundaries by key and offset, and for each given one its place among them."""
    order = np.lexsort((bound, key))
    key, bound = key[order], bound[order]
    new = np.ones(order.size, np.bool_)
    new[1:] = (key[1:] != key[:-1]) | (bound[1:] != bound[:-1])
    index = np.empty(order.size, np.int64)
    index[order] = np.cumsum(new) - 1
    return key[new], bound[new], index


def _painted(
    start: NDArray[np.int64], end: NDArray[np.int64], rank: NDArray[np.int32], pieces: int
) -> NDArray[np.int32]:
    """Return the greatest rank over each piece; a range covers the pieces ``start <= i < end``.

    A range of n pieces is covered by two stretches of 2**k <= n pieces, one from its start and one
    up to its end. Stretches are painted from the longest down, each handing on what it has to its
    two halves: the work grows with the number of ranges and of pieces, not with their overlap.
    """
    level = np.frexp((end - start).astype(np.float64))[1] - 1
    greatest = np.full(pieces, _UNPAINTED, np.int32)
    for step in range(int(level.max()), -1, -1):
        here = np.flatnonzero(level == step)
        length = 1 << step
        np.maximum.at(greatest, start[here], rank[here])
        np.maximum.at(greatest, end[here] - length, rank[here])
        if step:
            half = length >> 1
            upper = greatest[:-half].copy()
            np.maximum(greatest[half:], upper, out=greatest[half:])
    return greatest


def _runs(
    key: NDArray[np.int64], bound: NDArray[np.int64], rank: NDArray[np.int32]
) -> RankedRanges:
    """Join pieces that follow each other with one rank.

    Behind the last boundary of a key lies a piece that nothing covers: no run crosses to the next.
    """
    painted = rank != _UNPAINTED
    differs = rank[1:] != rank[:-1]
    begins, ends = painted.copy(), painted.copy()
    begins[1:] &= differs
    ends[:-1] &= differs
    first, last = np.flatnonzero(begins), np.flatnonzero(ends)
    return RankedRanges(key[first], bound[first] + 1, bound[last + 1], rank[first])
