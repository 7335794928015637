"""Range keeps partition N of equally large topics together, which joins rely on.

Such a set moves as one, so sizes can be further apart than one and still be as even as it gets.
"""

from __future__ import annotations

from analytics.assignors.group import Group, Member

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
