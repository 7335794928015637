"""What the times of a log's records measure, where a clock was set or a leader's was wrong.

Records of a partition follow each other; where one has an earlier time than the one before it a
clock was set, or the next leader has another one. How far it went back no record shows, as nothing
tells how long it was between the two; nor when a clock that is behind was put right, or one that is
right was set ahead: it only seems that nothing happened for longer. So in such a log no time
measures how long something took. Where the metadata log shows whose clock was wrong, only what that
broker wrote is in doubt.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Numbers = NDArray[np.int64]
    Flags = NDArray[np.bool_]

Span = tuple[int, int]
NOBODY: Final = -1
"""In place of a stretch that a wrong clock wrote: a clock that nothing contradicts."""


@dataclass(frozen=True)
class LogClock:
    """The clocks of one log; all offsets in order.

    Attributes:
        steps: Between the first and the last of each, which are mostly the same offset, lie the
            first records behind a step back.
        wrong: Which offsets were written by brokers whose clocks are known to have been wrong: the
            first of each stretch, and the one after its last.
    """

    steps: tuple[Span, ...] = ()
    wrong: tuple[Span, ...] = ()

    @property
    def first_doubt(self) -> int | None:
        """The first offset whose time may be another clock's than that of those before it."""
        return min((first for first, _ in (*self.steps, *self.wrong)), default=None)

    @property
    def unexplained(self) -> tuple[Span, ...]:
        """The steps back that are not between a broker whose clock was wrong and another one."""
        edges = {offset for span in self.wrong for offset in span}
        return tuple(each for each in self.steps if each[0] != each[1] or each[0] not in edges)

    def until(self, end: int | None) -> LogClock | None:
        """Return what is known of the records before an offset, None of all; None for nothing."""
        kept = self
        if end is not None:
            steps, wrong = (
                tuple((first, min(last, bound)) for first, last in spans if first < end)
                for spans, bound in ((self.steps, end - 1), (self.wrong, end))
            )
            kept = replace(self, steps=steps, wrong=wrong)
        return kept if kept.steps or kept.wrong else None

    def is_wrong(self, offsets: Numbers) -> Flags:
        """Return which records were written by a broker whose clock was wrong."""
        found: Flags = self.stretch_of(offsets) != NOBODY
        return found

    def are_doubtful(self, offsets: Numbers) -> Flags:
        """Return of which records the time measures nothing."""
        if self.unexplained:
            return np.ones(offsets.shape, np.bool_)
        return self.is_wrong(offsets)

    def stretch_of(self, offsets: Numbers) -> Numbers:
        """Return which stretch of a wrong clock each record is in, `NOBODY` for none."""
        first, end = np.array(self.wrong, np.int64).reshape(-1, 2).T
        place = np.searchsorted(first, offsets, side="right") - 1
        is_in = (place >= 0) & (offsets < np.append(end, 0)[place])
        return np.where(is_in, place, NOBODY)

    def is_other(self, after: Numbers, until: Numbers) -> Flags:
        """Return which records another clock wrote than wrote an earlier one of the same pair.

        Args:
            after: The earlier ones.
            until: The other ones; `NOBODY` for the instant, which no clock tells that is wrong.
        """
        found: Flags = self.stretch_of(after) != self.stretch_of(until)
        for first, last in self.unexplained:
            found |= (last > after) & ((until == NOBODY) | (first <= until))
        return found


Clocks = Mapping[tuple[str, int], LogClock]
"""By topic and partition; those that are not there have clocks that nothing contradicts."""


def clocks_of_topic(clocks: Clocks, topic: str) -> dict[int, LogClock]:
    """Return those of a topic, by partition."""
    return {number: clock for (name, number), clock in clocks.items() if name == topic}


def doubtful_times(clocks: Mapping[int, LogClock], partitions: Numbers, offsets: Numbers) -> Flags:
    """Return of which records of a topic the time measures nothing.

    Args:
        clocks: Of `clocks_of_topic`.
        partitions: Of each record.
        offsets: Likewise.
    """
    found = np.zeros(len(partitions), np.bool_)
    for number, clock in clocks.items():
        here = partitions == number
        found[here] = clock.are_doubtful(offsets[here])
    return found
