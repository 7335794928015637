"""Storms found by trying every stretch of epochs: slow, and plain."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple


class Begun(NamedTuple):
    """An epoch: when it began, in milliseconds, and how many before it left no record."""

    at: int
    missing: int


class Storm(NamedTuple):
    """A stretch of time and how many epochs began in it."""

    begins: int
    ends: int
    epochs: int


def plain_storms(begun: Sequence[Begun], epochs: int, minutes: float) -> list[Storm]:
    """Return the storms of one group, in order of time."""
    ordered = sorted(begun)
    stretches = [
        (ordered[first].at, ordered[last].at)
        for first in range(len(ordered))
        for last in range(first, len(ordered))
        if ordered[last].at - ordered[first].at <= minutes * 60_000
        and _count(ordered[first : last + 1]) >= epochs
    ]
    joined: list[tuple[int, int]] = []
    for begins, ends in sorted(stretches):
        if joined and begins <= joined[-1][1]:
            joined[-1] = joined[-1][0], max(ends, joined[-1][1])
        else:
            joined.append((begins, ends))
    return [
        Storm(begins, ends, _count([each for each in ordered if begins <= each.at <= ends]))
        for begins, ends in joined
    ]


def _count(stretch: Sequence[Begun]) -> int:
    return len(stretch) + sum(each.missing for each in stretch[1:])
