"""Figures about sizes: how many partitions members have, and how far that is from even."""

from __future__ import annotations

import heapq
import math
from collections import deque
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from analytics.assignors.group import Group
from schemas.evaluation_rules import BalanceRules

# The most even sizes that subscriptions allow, whatever the assignor.
#
# Giving partitions to members as evenly as possible is an optimal semi-matching (Harvey, Ladner,
# Lovász and Tamir, 2003): it is reached when no chain of hand-overs leads from a member to one
# that has at least two less, and then no other assignment has a lower maximum or a higher
# minimum. Members that want the same are as one here, as what they have can be dealt among them
# at will.

MOST_WORK = 2_000_000
"""Steps along chains after which the search ends without knowing that it found the best."""


@dataclass(frozen=True)
class BestSpread:
    """Sizes of all members, ascending, and whether nothing more even exists for certain."""

    sizes: tuple[int, ...]
    is_certain: bool


def best_spread(group: Group) -> BestSpread:
    """Return the most even sizes for one owner a partition."""
    dealing = _Dealing(group)
    dealing.give_out()
    is_certain = dealing.even_out()
    return BestSpread(tuple(sorted(dealing.sizes())), is_certain)


class _Dealing:
    """Kinds of members (all that want the same), and how much of each topic a kind has."""

    def __init__(self, group: Group) -> None:
        self.counts = {topic: group.topics[topic] for topic in group.subscribed_topics()}
        numbers: dict[frozenset[str], int] = {}
        for member in group.members:
            wanted = frozenset(self.counts).intersection(member.subscription)
            numbers[wanted] = numbers.get(wanted, 0) + 1
        self.kinds = sorted(numbers, key=sorted)
        self.members = [numbers[kind] for kind in self.kinds]
        self.loads = [0] * len(self.kinds)
        self.given: list[dict[str, int]] = [{} for _ in self.kinds]
        self.wanting: dict[str, list[int]] = {topic: [] for topic in self.counts}
        for number, kind in enumerate(self.kinds):
            for topic in kind:
                self.wanting[topic].append(number)
        self.work = 0

    def sizes(self) -> Iterable[int]:
        for load, members in zip(self.loads, self.members, strict=True):
            quota, extras = divmod(load, members)
            yield from [quota + 1] * extras
            yield from [quota] * (members - extras)

    def give_out(self) -> None:
        """Give each partition to the kind whose smallest member is smallest, rare topics first."""
        for topic in sorted(self.counts, key=lambda t: (len(self.wanting[t]), t)):
            ladder = [
                (self.loads[kind] // self.members[kind], kind) for kind in self.wanting[topic]
            ]
            heapq.heapify(ladder)
            for _ in range(self.counts[topic]):
                kind = ladder[0][1]
                self.loads[kind] += 1
                self.given[kind][topic] = self.given[kind].get(topic, 0) + 1
                heapq.heapreplace(ladder, (self._smallest(kind), kind))

    def even_out(self) -> bool:
        """Hand partitions along chains while that helps; return whether the end was reached."""
        while True:
            for giver in sorted(range(len(self.kinds)), key=lambda kind: -self._largest(kind)):
                if self.work > MOST_WORK:
                    return False
                if chain := self._chain_from(giver):
                    self._hand_along(giver, chain)
                    break
            else:
                return True

    def _smallest(self, kind: int) -> int:
        return self.loads[kind] // self.members[kind]

    def _largest(self, kind: int) -> int:
        return -(-self.loads[kind] // self.members[kind])

    def _chain_from(self, giver: int) -> list[tuple[str, int]]:
        """Return topics and takers that lead to a member with at least two less; empty if none."""
        low_enough = self._largest(giver) - 2
        before: dict[int, tuple[int, str]] = {}
        seen_topics: set[str] = set()
        queue = deque([giver])
        while queue:
            kind = queue.popleft()
            if kind != giver and self._smallest(kind) <= low_enough:
                return self._unwound(giver, kind, before)
            for topic, count in self.given[kind].items():
                if not count or topic in seen_topics:
                    continue
                seen_topics.add(topic)
                self.work += len(self.wanting[topic])
                for taker in self.wanting[topic]:
                    if taker != giver and taker not in before:
                        before[taker] = kind, topic
                        queue.append(taker)
        return []

    @staticmethod
    def _unwound(
        giver: int, last: int, before: dict[int, tuple[int, str]]
    ) -> list[tuple[str, int]]:
        chain = []
        kind = last
        while kind != giver:
            previous, topic = before[kind]
            chain.append((topic, kind))
            kind = previous
        return chain[::-1]

    def _hand_along(self, giver: int, chain: list[tuple[str, int]]) -> None:
        kind = giver
        for topic, taker in chain:
            self.given[kind][topic] -= 1
            self.given[taker][topic] = self.given[taker].get(topic, 0) + 1
            kind = taker
        self.loads[giver] -= 1
        self.loads[kind] += 1


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
    near = mean * max(0.0, 1 - rules.band.reach), mean * (1 + rules.band.reach)
    lowest, highest = (round(each, _DIGITS) for each in near)
    return (
        min(math.floor(round(mean, _DIGITS)), math.ceil(lowest)),
        max(math.ceil(round(mean, _DIGITS)), math.floor(highest)),
    )


def is_even(spread: Spread, rules: BalanceRules) -> bool:
    """Whether nobody is idle and all sizes are within the band."""
    lowest, highest = band(spread.mean, rules)
    return not spread.idle and lowest <= spread.smallest and spread.largest <= highest
