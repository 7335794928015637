"""What is measured of a case before anything is said about it."""

from __future__ import annotations

import heapq
import math
from collections import deque
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from analytics.assignors.group import AssignmentRefusedError, Group, Member, TopicPartition, sharing
from analytics.assignors.in_member_order import assign_share_simple
from analytics.questions.balance.case import Case
from schemas.evaluation_rules import BalanceRules

# Figures about sizes: how many partitions members have, and how far that is from even.

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


# Range keeps partition N of equally large topics together, which joins rely on.
#
# Such a set moves as one, so sizes can be further apart than one and still be as even as it gets.

RANGE = "range"

Unit = tuple[int, int]
"""A set of topics, by number, and the partition of each of them."""


class CoPartitions:
    """The sets of topics that have equally many partitions and the same subscribers."""

    def __init__(self, group: Group) -> None:
        sets: dict[tuple[int, frozenset[str]], list[str]] = {}
        for topic in group.subscribed_topics():
            wanted_by = frozenset(m.id for m in group.members if topic in m.subscription)
            sets.setdefault((group.topics[topic], wanted_by), []).append(topic)
        self.sets = list(sets.values())
        self.wanted_by = [wanted_by for _, wanted_by in sets]
        self.group = group

    @property
    def widest(self) -> list[str]:
        """Return the largest set of topics."""
        return max(self.sets, key=len, default=[])

    def units_of(self, member: Member) -> set[Unit] | None:
        """Return what a member has, in units; None if it has a part of one only."""
        owned = {topic: set(held) for topic, held in self.group.owned(member).items()}
        units: set[Unit] = set()
        for number, topics in enumerate(self.sets):
            held = [owned.get(topic, set()) for topic in topics]
            if any(each != held[0] for each in held):
                return None
            units.update((number, partition) for partition in held[0])
        return units


def is_as_even_as_units_allow(group: Group) -> bool:
    """Whether neither moving nor swapping whole units would make sizes more even.

    False where units are single partitions, or where they are not kept together.
    """
    parts = CoPartitions(group)
    if len(parts.widest) < 2:
        return False
    held = {member.id: parts.units_of(member) for member in group.members}
    sizes: dict[str, int] = {}
    kinds: dict[str, set[int]] = {}
    for member, units in held.items():
        if units is None:
            return False
        sizes[member] = sum(len(parts.sets[number]) for number, _ in units)
        kinds[member] = {number for number, _ in units}
    return not any(
        _helps(parts, kinds, giver, taker, sizes[giver] - sizes[taker])
        for giver in sizes
        for taker in sizes
        if sizes[giver] - sizes[taker] >= 2
    )


def _helps(
    parts: CoPartitions, kinds: dict[str, set[int]], giver: str, taker: str, gap: int
) -> bool:
    """Whether giving one unit, for nothing or for a smaller one, narrows the gap."""
    for number in kinds[giver]:
        if taker not in parts.wanted_by[number]:
            continue
        weight = len(parts.sets[number])
        if weight < gap:
            return True
        for back in kinds[taker]:
            if giver in parts.wanted_by[back] and 0 < weight - len(parts.sets[back]) < gap:
                return True
    return False


@dataclass(frozen=True)
class Facts:
    """A case in figures.

    Attributes:
        spread: Of all sizes.
        to_assign: Partitions that should have an owner.
        unassigned: Those of them that have none.
        doubled: Partitions with several owners where only one may have them.
        shared: Partitions with several owners.
        best: The most even sizes possible; None where it cannot be told.
        by_units: Whether range keeps co-partitioned topics together, and nothing more even is
            possible as long as it does.
        forced: Whether it is uneven, or idle, and nothing more even is possible; None: cannot
            tell.
    """

    spread: Spread
    to_assign: int
    unassigned: list[TopicPartition]
    doubled: list[TopicPartition]
    shared: int
    best: BestSpread | None
    by_units: bool
    forced: bool | None


def facts_of(case: Case) -> Facts:
    """Measure a case whose assignment can be read."""
    owners = case.owners()
    to_assign = case.to_assign()
    unassigned = [partition for partition in to_assign if partition not in owners]
    several = [partition for partition, members in owners.items() if len(members) > 1]
    sizes = list(case.sizes().values())
    spread = spread_of(sizes)
    is_uneven = spread.largest > spread.smallest
    best = None if case.unknown else _best(case)
    by_units = (
        is_uneven
        and case.protocol == RANGE
        and not (case.unknown or unassigned or case.is_share)
        and is_as_even_as_units_allow(case.group)
    )
    # Who is idle has to be where nothing is there to be given.
    forced: bool | None = spread.idle > 0 and not (to_assign or case.unknown)
    if is_uneven:
        forced = _forced(case, sizes, best, unassigned, by_units=by_units)
    return Facts(
        spread=spread,
        to_assign=len(to_assign),
        unassigned=unassigned,
        doubled=[] if case.is_share else sorted(several),
        shared=len(several),
        best=best,
        by_units=by_units,
        forced=forced,
    )


def _best(case: Case) -> BestSpread | None:
    if not case.is_share:
        return best_spread(case.group)
    try:
        shared = assign_share_simple(case.group)
    except AssignmentRefusedError:
        return None
    # Share groups deal every partition to several members; Kafka's own assignor is the measure.
    sizes = [sum(map(len, shared.get(m.id, {}).values())) for m in case.group.members]
    is_whole = len(sharing(shared)) == len(case.to_assign())
    return BestSpread(tuple(sorted(sizes)), is_whole)


def _forced(
    case: Case,
    sizes: list[int],
    best: BestSpread | None,
    unassigned: list[TopicPartition],
    *,
    by_units: bool,
) -> bool | None:
    """Whether uneven sizes are the most even ones possible."""
    if case.unknown or best is None:
        return None
    if unassigned or case.partitions_of_deleted():
        return False
    if by_units:
        return True
    if case.is_share:
        return max(sizes) - min(sizes) <= best.sizes[-1] - best.sizes[0]
    if _unevenness(sizes) > _unevenness(best.sizes):
        return False
    return True if best.is_certain else None


def _unevenness(sizes: list[int] | tuple[int, ...]) -> int:
    """Return the sum of squares: for the same partitions, the lower the more even."""
    return sum(size * size for size in sizes)
