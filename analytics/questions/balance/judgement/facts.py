"""What is measured of a case before anything is said about it."""

from __future__ import annotations

from dataclasses import dataclass

from analytics.assignors.group import AssignmentRefusedError, Group, Member, TopicPartition
from analytics.assignors.measure import sharing
from analytics.assignors.share_simple import assign_share_simple
from analytics.questions.balance.cases.case import Case
from analytics.questions.balance.judgement.spread import BestSpread, Spread, best_spread, spread_of

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
