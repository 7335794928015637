"""The union of copies along one line: every record once, whichever copy has it.

Compaction makes copies of equal logs differ: each broker cleans on its own. What the leading copy
has lost (a file, a damaged batch, records cleaned away) is taken from another one, unless that
would bring a deleted key back to life: a record that the leading copy cleaned away was followed by
a newer one or by a tombstone, and tombstones go in the end. Only a copy that goes on, without a
hole, to where the leading one was cleaned still shows what followed.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from analytics.dump.copies.compare import near_batches, offsets_between, runs_of
from analytics.dump.files.model import MAX_OFFSET, Filled
from schemas import COMPACTED_TOPICS

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from analytics.dump.batches.walks import CopyLog
    from analytics.dump.copies.surviving_lines import LeaderRange

DUPLICATE = "duplicate_copy"
SUPERSEDED = "superseded_in_leading_copy"

OLDER = "older_segments"
MISSING = "missing_there"
CLEANED = "cleaned_there"

_WHY = (CLEANED, OLDER, MISSING)

_DUPLICATE, _NEW, _DOUBTFUL = 0, 1, 2
_WORDS = {0: DUPLICATE, 2: SUPERSEDED}
_REFUSED = 2


class Range(NamedTuple):
    """Offsets left out of a copy, and by which rule."""

    first: int
    end: int
    rule: str


class _Units(NamedTuple):
    """Stretches of a copy's records, ascending, and what becomes of them."""

    first: NDArray[np.int64]
    end: NDArray[np.int64]
    verdict: NDArray[np.int8]


class _Added(NamedTuple):
    log: CopyLog
    first: int
    end: int


@dataclass
class LineUnion:
    """The records of one line, as copies are added to it; the first one added leads.

    Attributes:
        line: ``""``, or the copy whose line it is.
        filled: What copies after the first gave.
    """

    line: str
    filled: list[Filled] = field(default_factory=list)
    _added: list[_Added] = field(default_factory=list)

    def add(self, log: CopyLog, leader_range: LeaderRange) -> list[Range]:
        """Add a copy's records of a range; return what is left out of them, ascending."""
        ranges: list[Range] = []
        if self._added:
            units = self._units(log, leader_range)
            self._take(log, units)
            ranges = _ranges(units)
        self._added.append(_Added(log, leader_range.first, leader_range.end))
        return ranges

    def _units(self, log: CopyLog, leader_range: LeaderRange) -> _Units:
        headers = log.headers
        inside = (headers.last_offset >= leader_range.first) & (
            headers.base_offset < leader_range.end
        )
        rows = np.flatnonzero(inside)
        verdict = self._by_header(log, rows)
        known = verdict != _DOUBTFUL
        parts = [
            _Units(
                headers.base_offset[rows[known]],
                headers.last_offset[rows[known]] + 1,
                verdict[known],
            )
        ]
        parts += [self._by_record(log, first, end) for first, end in runs_of(rows[~known])]
        first, end, verdict = (np.concatenate(column) for column in zip(*parts, strict=True))
        order = np.argsort(first, kind="stable")
        return _Units(first[order], end[order], verdict[order].astype(np.int8))

    def _by_header(self, log: CopyLog, rows: NDArray[np.int64]) -> NDArray[np.int8]:
        """Tell whether batches are there already, are new, or must be looked into."""
        ours = log.headers.take(rows)
        verdict = np.full(rows.size, _NEW, np.int8)
        for each in self._added:
            theirs = each.log.headers
            near = near_batches(ours, theirs)
            there = near.equal
            if near.aligned.any():
                there = there | (near.aligned & theirs.is_whole[near.row])
            verdict[near.overlaps & (verdict == _NEW)] = _DOUBTFUL
            verdict[there] = _DUPLICATE
        verdict[ours.count == 0] = _DUPLICATE
        return verdict

    def _by_record(self, log: CopyLog, first: int, end: int) -> _Units:
        """Look into the batches from row ``first`` to before row ``end``."""
        low, high = int(log.headers.base_offset[first]), int(log.headers.last_offset[end - 1]) + 1
        ours = offsets_between(log, low, high)
        theirs = [
            offsets_between(each.log, max(low, each.first), min(high, each.end))
            for each in self._added
        ]
        verdict = np.where(np.isin(ours, np.concatenate(theirs)), _DUPLICATE, _NEW)
        return _Units(ours, ours + 1, verdict.astype(np.int8))

    def _take(self, log: CopyLog, units: _Units) -> None:
        """Note what a copy gives, and refuse what must not come back."""
        leader = self._added[0].log
        new = units.verdict == _NEW
        begins = leader.walks[0].segment.base_offset if leader.walks else leader.end_offset
        cleaned_to = _cleaned_to(leader)
        cleaned = new & (units.first >= begins) & (units.first < cleaned_to)
        for first, end in _damaged(leader):
            # What lies there now is damage: it was not cleaned away.
            cleaned &= ~((units.first >= first) & (units.end <= end))
        if not _reaches(log, cleaned_to):
            units.verdict[cleaned] = _REFUSED
            new &= ~cleaned
        why = np.where(cleaned, 0, np.where(units.first < begins, 1, 2))
        for first, end in runs_of(np.flatnonzero(new), longest=None):
            for word in dict.fromkeys(why[first:end].tolist()):
                chosen = np.flatnonzero(why[first:end] == word) + first
                low, high = int(units.first[chosen[0]]), int(units.end[chosen[-1]])
                key = log.partition.key
                self.filled.append(Filled(*key, self.line, log.name, low, high, _WHY[word]))


def _damaged(log: CopyLog) -> list[tuple[int, int]]:
    """Return the offsets that may have stood where a copy's bytes are damaged."""
    found = []
    for number, walk in enumerate(log.walks):
        headers = walk.headers
        following = [other.segment.base_offset for other in log.walks[number + 1 :]]
        for damage in walk.damages:
            after = int(np.searchsorted(headers.position, damage.position))
            first = int(headers.last_offset[after - 1]) + 1 if after else walk.segment.base_offset
            end = int(headers.base_offset[after]) if after < len(headers) else None
            found.append((first, end if end is not None else min([*following, MAX_OFFSET])))
    return found


def _cleaned_to(log: CopyLog) -> int:
    """Return the offset below which a cleaner may have removed records."""
    if log.partition.topic not in COMPACTED_TOPICS:
        return 0
    dirty = log.partition.first_dirty_offset
    return log.end_offset if dirty is None else dirty


def _reaches(log: CopyLog, offset: int) -> bool:
    """Whether a copy goes on to an offset, with no hole but those of its own cleaner."""
    if log.end_offset < offset or any(walk.damages for walk in log.walks):
        return False
    headers, clean = log.headers, log.partition.first_dirty_offset or 0
    holes = headers.base_offset[1:] > headers.last_offset[:-1] + 1
    after = headers.base_offset[1:]
    return not (holes & (after > clean) & (after <= offset)).any()


def _ranges(units: _Units) -> list[Range]:
    """Return the runs of units left out, each with its rule."""
    if not units.verdict.size:
        return []
    breaks = np.flatnonzero(np.diff(units.verdict)) + 1
    firsts = np.concatenate([[0], breaks])
    ends = np.concatenate([breaks, [units.verdict.size]])
    return [
        Range(int(units.first[first]), int(units.end[end - 1]), _WORDS[verdict])
        for first, end in zip(firsts.tolist(), ends.tolist(), strict=True)
        if (verdict := int(units.verdict[first])) != _NEW
    ]
