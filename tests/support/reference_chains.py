"""A share-partition leader that recovers from checkpoints and deltas, slowly and plainly.

Written from the early text of KIP-932 alone: a dictionary from offset to delivery state in place
of ranges, one record after the other. It shares nothing with the fold that is held against it.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

CHECKPOINT, DELTA = "checkpoint", "delta"
AVAILABLE, ACKNOWLEDGED, ARCHIVED = 0, 2, 4
FINAL = (ACKNOWLEDGED, ARCHIVED)


@dataclass(frozen=True)
class Range:
    """Offsets from first to last, included, in a state."""

    first: int
    last: int
    state: int
    count: int


@dataclass(frozen=True)
class ChainRecord:
    """A checkpoint (with start and end) or a delta (with the offset of the record before it)."""

    offset: int
    group: str
    kind: str
    epoch: int
    back: int | None = None
    start: int | None = None
    end: int | None = None
    ranges: tuple[Range, ...] = ()


@dataclass
class Recovered:
    """What one group has after some records."""

    epoch: int | None = None
    newest: int | None = None
    broken: bool = False
    start: int | None = None
    end: int | None = None
    states: dict[int, tuple[int, int]] = field(default_factory=dict)
    told: dict[int, tuple[bool, int | None, int | None]] = field(default_factory=dict)

    def take(self, record: ChainRecord) -> None:
        """Take the group's next record."""
        applied = self._checkpoint(record) if record.kind == CHECKPOINT else self._delta(record)
        if applied:
            self.newest = record.offset
            self._apply(record)
        self.told[record.offset] = (applied, self.start, self.end)

    def _checkpoint(self, record: ChainRecord) -> bool:
        assert record.start is not None
        assert record.end is not None
        self.epoch, self.states = record.epoch, {}
        beyond = any(each.last >= record.end for each in record.ranges)
        if record.start < 0 or record.end < record.start or beyond or not _sound(record):
            self.broken, self.newest, self.start, self.end = True, None, None, None
            return False
        self.broken, self.start, self.end = False, record.start, record.end
        return True

    def _delta(self, record: ChainRecord) -> bool:
        if self.epoch is None:
            return False
        if record.epoch != self.epoch:
            # Of two numbers of 16 bits the newer one is less than half the circle ahead.
            if 0 < (record.epoch - self.epoch) % 65536 < 32768:
                self.broken = True
            return False
        if self.broken or record.back != self.newest or not _sound(record):
            self.broken = True
            return False
        return True

    def _apply(self, record: ChainRecord) -> None:
        assert self.start is not None
        assert self.end is not None
        for each in record.ranges:
            for offset in range(max(each.first, self.start), each.last + 1):
                self.states[offset] = (each.state, each.count)
                self.end = max(self.end, offset + 1)
        while self.start in self.states and self.states[self.start][0] in FINAL:
            del self.states[self.start]
            self.start += 1
        self.end = max(self.end, self.start)

    @property
    def ranges(self) -> list[Range]:
        """What is in flight, neighbours that are alike joined."""
        found: list[Range] = []
        for offset, (state, count) in sorted(self.states.items()):
            last = found[-1] if found else None
            if last and (last.last + 1, last.state, last.count) == (offset, state, count):
                found[-1] = Range(last.first, offset, state, count)
            else:
                found.append(Range(offset, offset, state, count))
        return found


def recover(records: Iterable[ChainRecord]) -> dict[str, Recovered]:
    """Recover every group from the records of one data partition, in any order."""
    groups: dict[str, Recovered] = {}
    for record in sorted(records, key=lambda each: each.offset):
        groups.setdefault(record.group, Recovered()).take(record)
    return groups


def _sound(record: ChainRecord) -> bool:
    return all(
        each.state in (AVAILABLE, *FINAL) and 0 <= each.first <= each.last and each.count >= 0
        for each in record.ranges
    )
