"""Stretches of a log in which time goes on, between which a clock was set back or jumped ahead.

What a clock said is judged later, against other partitions; here it is only counted.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Final, NamedTuple

import numpy as np

if TYPE_CHECKING:
    from analytics.dump.batches.header_columns import Headers

BACK_MS: Final = 60_000
"""Times that go back by less are of one stretch: so brokers take turns, and clients' clocks."""
FORWARD_MS: Final = 86_400_000
MOST: Final = 200
"""So many stretches of a file are kept apart; of more, those that follow each other are joined."""


class Stretch(NamedTuple):
    """Batches in a row.

    Attributes:
        first_offset: Of the first of them.
        end_offset: After the last.
        first_ms: The least time of a batch, epoch milliseconds.
        last_ms: The greatest.
        batches: How many have a time.
    """

    first_offset: int
    end_offset: int
    first_ms: int
    last_ms: int
    batches: int


def stretches_of(headers: Headers) -> tuple[Stretch, ...]:
    """Return the stretches of batches in the order of the log, of those that have a time."""
    timed = np.flatnonzero(headers.max_timestamp >= 0)
    if not timed.size:
        return ()
    times = headers.max_timestamp[timed]
    steps = np.diff(times)
    starts = np.concatenate([[0], np.flatnonzero((steps < -BACK_MS) | (steps > FORWARD_MS)) + 1])
    ends = np.append(starts[1:], len(times))
    return in_order(
        map(
            Stretch,
            headers.base_offset[timed][starts].tolist(),
            (headers.last_offset[timed][ends - 1] + 1).tolist(),
            np.minimum.reduceat(times, starts).tolist(),
            np.maximum.reduceat(times, starts).tolist(),
            (ends - starts).tolist(),
        )
    )


def in_order(stretches: Iterable[Stretch]) -> tuple[Stretch, ...]:
    """Return stretches that follow each other, those as one between which no clock was set."""
    found: list[Stretch] = []
    for each in stretches:
        if found and -BACK_MS <= each.first_ms - found[-1].last_ms <= FORWARD_MS:
            found[-1] = _one(found[-1], each)
        else:
            found.append(each)
    while len(found) > MOST:
        # The earliest pair in order says least of the end.
        pairs = range(len(found) - 1)
        at = next((n for n in pairs if found[n + 1].first_ms >= found[n].last_ms), 0)
        found[at : at + 2] = [_one(found[at], found[at + 1])]
    return tuple(found)


def _one(first: Stretch, second: Stretch) -> Stretch:
    return Stretch(
        first.first_offset,
        second.end_offset,
        min(first.first_ms, second.first_ms),
        max(first.last_ms, second.last_ms),
        first.batches + second.batches,
    )
