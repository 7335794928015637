"""Stretches of a log in which time goes on, between which a clock was set back or jumped ahead.

What a clock said is judged later, against other partitions; here it is only counted.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Final, NamedTuple

import numpy as np

from analytics.epoch_times import are_times

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from analytics.dump.batches.headers import Headers
    from schemas.manifest import LogFacts

    Offsets = NDArray[np.int64]

BACK_MS: Final = 60_000
"""Times that go back by less are of one stretch: so brokers take turns, and clients' clocks."""
FORWARD_MS: Final = 86_400_000
SAME_CLOCK_MS: Final = 1000
"""Clocks of the brokers of a cluster differ by less."""
MOST: Final = 200
"""So many stretches of a file are kept apart; of more, those that follow each other are joined."""
_SEVERAL: Final = 2


class ClockStep(NamedTuple):
    """Where a clock was set back.

    Attributes:
        first_offset: The first offset of the batch before which it was.
        last_offset: The same, or that of the last of several that are told as one: between the two
            it may have been set anywhere.
        before_ms: The time of the batch before, epoch milliseconds; of several the latest.
    """

    first_offset: int
    last_offset: int
    before_ms: int


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
    return stretches_in(headers.base_offset, headers.last_offset + 1, headers.max_timestamp)


def stretches_in(first: Offsets, end: Offsets, at_ms: Offsets) -> tuple[Stretch, ...]:
    """Return the stretches of batches, or of records, in the order of the log.

    Args:
        first: The first offset of each.
        end: The offset after its last.
        at_ms: Its time, epoch milliseconds; any other number where it has none.
    """
    timed = np.flatnonzero(are_times(at_ms))
    if not timed.size:
        return ()
    times = at_ms[timed]
    steps = np.diff(times)
    starts = np.concatenate([[0], np.flatnonzero((steps < -BACK_MS) | (steps > FORWARD_MS)) + 1])
    ends = np.append(starts[1:], len(times))
    return in_order(
        map(
            Stretch,
            first[timed][starts].tolist(),
            end[timed][ends - 1].tolist(),
            np.minimum.reduceat(times, starts).tolist(),
            np.maximum.reduceat(times, starts).tolist(),
            (ends - starts).tolist(),
        )
    )


def clock_steps(
    first: Offsets, at_ms: Offsets, before_ms: int | None = None
) -> tuple[ClockStep, ...]:
    """Return the batches before which a clock was set back, in the order of the log.

    What goes back by a day and more follows on a time that is not believed: no clock was set.

    Args:
        first: The first offset of each batch, in the order of the log.
        at_ms: Its time, epoch milliseconds; any other number where it has none.
        before_ms: That of the batch before.
    """
    timed = np.flatnonzero(are_times(at_ms))
    times = at_ms[timed] if before_ms is None else np.concatenate([[before_ms], at_ms[timed]])
    back = times[:-1] - times[1:]
    found = np.flatnonzero((back > SAME_CLOCK_MS) & (back < FORWARD_MS))
    offsets = first[timed[found + (1 if before_ms is None else 0)]].tolist()
    return few_steps(map(ClockStep, offsets, offsets, times[found].tolist()))


def few_steps(steps: Iterable[ClockStep]) -> tuple[ClockStep, ...]:
    """Return steps in the order of the log, of too many of them the last ones as one."""
    found = tuple(steps)
    kept, others = found[: MOST - 1], found[MOST - 1 :]
    if not others:
        return kept
    latest = max(each.before_ms for each in others)
    return (*kept, ClockStep(others[0].first_offset, others[-1].last_offset, latest))


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


def stretch_rows(stretches: Sequence[Stretch]) -> LogFacts:
    """Return `stretches` as manifests have it; nothing where no clock was set."""
    if len(stretches) < _SEVERAL:
        return {}
    return {
        "stretches": [
            {
                "first_offset": each.first_offset,
                "end_offset": each.end_offset,
                "first_ms": each.first_ms,
                "last_ms": each.last_ms,
                "batches": each.batches,
            }
            for each in stretches
        ]
    }


def _one(first: Stretch, second: Stretch) -> Stretch:
    return Stretch(
        first.first_offset,
        second.end_offset,
        min(first.first_ms, second.first_ms),
        max(first.last_ms, second.last_ms),
        first.batches + second.batches,
    )
