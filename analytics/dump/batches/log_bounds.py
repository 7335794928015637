"""What the checksum does not cover, offsets and leader epochs, judged by what a log can hold.

Base offsets grow strictly along a log and leader epochs never fall (``UnifiedLog.append``,
``LeaderEpochFileCache``). Where that is broken, the fewest batches that explain it are to blame;
between equals, those whose removal leaves offsets without holes.
"""

from __future__ import annotations

from bisect import bisect_left
from dataclasses import dataclass
from itertools import accumulate
from typing import TYPE_CHECKING, Final

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from analytics.dump.records.raw_records import Batches

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
