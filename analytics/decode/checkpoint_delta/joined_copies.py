"""Several copies of a data partition to one log: what all that could have it agree on."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from functools import reduce
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from analytics.decode.checkpoint_delta.chain_records import ChainLog, Lost
from analytics.dump.files.model import MAX_OFFSET

if TYPE_CHECKING:
    from numpy.typing import NDArray

_Range = tuple[int, int]


def joined(copies: Sequence[ChainLog]) -> ChainLog:
    """Join the copies of one partition; at least one.

    A copy fills what another lacks. Where one has a record that another one should have and has
    not, or has otherwise, neither is believed: which line survived cannot be told from control
    records alone.
    """
    return reduce(_of_two, copies)


def _of_two(one: ChainLog, other: ChainLog) -> ChainLog:
    differs = _differing(one, other)
    both = pa.concat_tables([one.records, other.records])
    offset, first = np.unique(both["offset"].to_numpy(), return_index=True)
    kept = ~np.isin(offset, differs)
    ends = [each.log_end_offset for each in (one, other) if each.log_end_offset is not None]
    lost = [
        *_unfilled(one, other),
        *_unfilled(other, one),
        *(Lost(at, at + 1, f"copies of the log differ at offset {at}") for at in differs.tolist()),
    ]
    return replace(
        one,
        records=both.take(pa.array(first[kept])),
        topic_id=one.topic_id or other.topic_id,
        log_start_offset=max(one.log_start_offset, other.log_start_offset),
        log_end_offset=max(ends, default=None),
        lost=tuple(sorted(set(lost))),
    )


def _differing(one: ChainLog, other: ChainLog) -> NDArray[np.int64]:
    """Return the offsets at which two copies contradict each other."""
    offsets = [each.records["offset"].to_numpy() for each in (one, other)]
    shared, here, there = np.intersect1d(
        offsets[0], offsets[1], assume_unique=True, return_indices=True
    )
    mine, theirs = one.records.take(pa.array(here)), other.records.take(pa.array(there))
    differs: list[int] = []
    if not mine.equals(theirs):
        rows = zip(shared.tolist(), mine.to_pylist(), theirs.to_pylist(), strict=True)
        differs = [offset for offset, left, right in rows if left != right]
    alone = [
        offset[_covers(copy, offset) & ~np.isin(offset, shared)]
        for offset, copy in zip(offsets, (other, one), strict=True)
    ]
    return np.unique(np.concatenate([np.array(differs, np.int64), *alone]))


def _covers(copy: ChainLog, offsets: NDArray[np.int64]) -> NDArray[np.bool_]:
    """Return whether a copy would hold a record at each of the offsets."""
    covered = np.zeros(offsets.size, np.bool_)
    for first, end in _covered(copy):
        covered |= (offsets >= first) & (offsets < end)
    return covered


def _covered(copy: ChainLog) -> list[_Range]:
    """Return the stretches of offsets of which a copy shows everything."""
    end = MAX_OFFSET if copy.log_end_offset is None else copy.log_end_offset
    lost = [(each.first_offset, each.end_offset) for each in copy.lost]
    return _without((copy.log_start_offset, end), lost)


def _unfilled(copy: ChainLog, other: ChainLog) -> list[Lost]:
    """Return what a copy lacks and the other one does not show either."""
    shown = _covered(other)
    return [
        Lost(first, end, each.why)
        for each in copy.lost
        for first, end in _without((each.first_offset, each.end_offset), shown)
    ]


def _without(whole: _Range, parts: Iterable[_Range]) -> list[_Range]:
    """Return what is left of a stretch of offsets without some parts."""
    left, at = [], whole[0]
    for first, end in sorted(parts):
        if first > at:
            left.append((at, min(first, whole[1])))
        at = max(at, end)
        if at >= whole[1]:
            break
    if at < whole[1]:
        left.append((at, whole[1]))
    return [each for each in left if each[0] < each[1]]
