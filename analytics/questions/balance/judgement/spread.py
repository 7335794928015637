"""Figures about sizes: how many partitions members have, and how far that is from even."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from schemas.evaluation_rules import BalanceRules

_DIGITS = 9
"""Enough for means of partition counts, and few enough to hide how floats are rounded."""


@dataclass(frozen=True)
class Spread:
    """Sizes in figures; all zero without members."""

    smallest: int
    largest: int
    mean: float
    deviation: float
    idle: int


def spread_of(sizes: Sequence[int]) -> Spread:
    """Return the figures of some sizes; the deviation is that of all members, not of a sample."""
    if not sizes:
        return Spread(0, 0, 0.0, 0.0, 0)
    mean = sum(sizes) / len(sizes)
    deviation = math.sqrt(sum((size - mean) ** 2 for size in sizes) / len(sizes))
    return Spread(min(sizes), max(sizes), mean, deviation, sum(size == 0 for size in sizes))


def moves_to_even(sizes: Sequence[int]) -> int:
    """Return how many partitions have to change their member until sizes differ by at most one."""
    if not sizes:
        return 0
    quota, extras = divmod(sum(sizes), len(sizes))
    above = [size - quota for size in sizes if size > quota]
    return sum(above) - min(extras, len(above))


def score(sizes: Sequence[int], covered: int, to_assign: int) -> float:
    """Return the evenness of sizes, from 0 to 100, times the share of partitions with an owner.

    100 says that no partition has to move and none lacks an owner; 0 that one member has all of
    them, or nobody any. In between the moves to an even spread count, out of those that it would
    take if one member had all.

    Args:
        sizes: Partitions of each member.
        covered: Partitions that have an owner, of
        to_assign: those that should.
    """
    total = sum(sizes)
    worst = total - math.ceil(total / len(sizes)) if sizes else 0
    evenness = 1 - min(1.0, moves_to_even(sizes) / worst) if worst > 0 else 1.0
    return 100 * evenness * (covered / to_assign if to_assign else 1.0)


def band(mean: float, rules: BalanceRules) -> tuple[int, int]:
    """Return the smallest and the largest size that count as even.

    Near enough to the mean, or as near as whole partitions allow.
    """
    near = mean * max(0.0, 1 - rules.reach), mean * (1 + rules.reach)
    lowest, highest = (round(each, _DIGITS) for each in near)
    return (
        min(math.floor(round(mean, _DIGITS)), math.ceil(lowest)),
        max(math.ceil(round(mean, _DIGITS)), math.floor(highest)),
    )


def is_even(spread: Spread, rules: BalanceRules) -> bool:
    """Whether nobody is idle and all sizes are within the band."""
    lowest, highest = band(spread.mean, rules)
    return not spread.idle and lowest <= spread.smallest and spread.largest <= highest
