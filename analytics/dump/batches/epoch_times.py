"""The times of batches by the leader that wrote them: what its clock said first and last."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from analytics.calendar_numbers import are_times

if TYPE_CHECKING:
    from analytics.dump.batches.header_columns import Headers


class EpochTimes(NamedTuple):
    """Batches of one leader epoch.

    Attributes:
        epoch: The leader epoch.
        least_ms: The least time of a batch, epoch milliseconds.
        most_ms: The greatest.
    """

    epoch: int
    least_ms: int
    most_ms: int


def epoch_times_of(headers: Headers) -> tuple[EpochTimes, ...]:
    """Return the times of batches that have one, and a leader epoch; ascending."""
    known = are_times(headers.max_timestamp) & (headers.leader_epoch >= 0)
    epochs, times = headers.leader_epoch[known], headers.max_timestamp[known]
    if not epochs.size:
        return ()
    order = np.argsort(epochs, kind="stable")
    epochs, times = epochs[order], times[order]
    starts = np.concatenate([[0], np.flatnonzero(np.diff(epochs)) + 1])
    return tuple(
        map(
            EpochTimes,
            epochs[starts].tolist(),
            np.minimum.reduceat(times, starts).tolist(),
            np.maximum.reduceat(times, starts).tolist(),
        )
    )


def in_all(times: Iterable[EpochTimes]) -> tuple[EpochTimes, ...]:
    """Return times of several pieces as those of all of them together, ascending."""
    found: dict[int, EpochTimes] = {}
    for each in times:
        held = found.get(each.epoch, each)
        found[each.epoch] = EpochTimes(
            each.epoch, min(held.least_ms, each.least_ms), max(held.most_ms, each.most_ms)
        )
    return tuple(found[epoch] for epoch in sorted(found))
