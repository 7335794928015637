"""Burrow's storage and evaluator, slow and simple: what it would say of one partition, and when.

After ``storage/inmemory.go`` and ``evaluator/caching.go``: every poll of an end offset and every
commit is remembered as Burrow does, and the verdict is made anew whenever it is asked for.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from itertools import pairwise


@dataclass
class Remembered:
    """A commit in the ring."""

    offset: int
    time: int
    lag: int


@dataclass
class ReferenceBurrow:
    """One partition of one group."""

    intervals: int
    min_distance: int  # milliseconds
    allowed_lag: int
    ring: list[Remembered] = field(default_factory=list)
    polls: list[int] = field(default_factory=list)

    def poll(self, end: int) -> None:
        self.polls = [*self.polls, end][-self.intervals :]

    def commit(self, offset: int, time: int) -> None:
        if not self.polls:
            return  # Burrow knows no end offset of the partition, and drops the commit
        entry = Remembered(offset, time, max(self.polls[-1] - offset, 0))
        if self.ring and time - self.ring[-1].time < self.min_distance:
            entry.time = self.ring[-1].time
            self.ring[-1] = entry
        else:
            self.ring = [*self.ring, entry][-self.intervals :]

    def delete(self) -> None:
        self.ring = []

    def status(self, now: int) -> str:  # noqa: PLR0911 - a rule each, as Burrow has them
        if not self.ring:
            return "NOT_EVALUABLE"
        last = self.ring[-1]
        if max(self.polls[-1] - last.offset, 0) <= self.allowed_lag:
            return "OK"
        seconds = now // 1000 * 1000
        if seconds - last.time > last.time - self.ring[0].time and not any(
            end <= last.offset for end in self.polls
        ):
            return "STOP"
        offsets = [each.offset for each in self.ring]
        for place in range(1, len(offsets)):
            if offsets[place] < offsets[place - 1]:
                if all(each < offsets[place - 1] for each in offsets[place:]):
                    return "REWIND"
                break
        lags = [each.lag for each in self.ring]
        if any(lag <= self.allowed_lag for lag in lags):
            return "OK"
        if len(set(offsets)) == 1:
            return "STALL"
        if all(later >= lag for lag, later in pairwise(lags)):
            return "WARN"
        return "OK"
