"""Client assignors `sticky` and `cooperative-sticky`: even sizes, as few moves as possible.

Where all members want the same topics (`ConstrainedAssignmentBuilder`), everybody gets the same
number of partitions, some one more; who owns enough keeps that much, and the rest is dealt to who
has less. Where they want different ones, see `sticky_general`.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from analytics.assignors.group import Assignment, Group, TopicPartition, by_topic
from analytics.assignors.java_order import members_in_order, sort_key
from analytics.assignors.racks import Racks
from analytics.assignors.sticky_claims import Claims, settle_claims
from analytics.assignors.sticky_general import balance_generally

_Target = dict[str, list[TopicPartition]]


def assign_sticky(group: Group) -> Assignment:
    """Keep what members own as far as sizes stay even, and deal the rest (`StickyAssignor`).

    With equal subscriptions sizes differ by at most one. With different ones no single partition
    could go to a member that has two less.
    """
    target, _ = _target(group)
    return _finished(group, target)


def assign_cooperative_sticky(group: Group) -> Assignment:
    """Aim at what `sticky` gives, but leave out what its owner must first let go (KIP-429).

    Such a partition is nobody's until the rebalance that follows (`CooperativeStickyAssignor`).
    """
    target, changing = _target(group)
    if changing is None:
        changing = _changing_owner(group, target)
    for partition, member in changing.items():
        target[member].remove(partition)
    return _finished(group, target)


def _target(group: Group) -> tuple[_Target, dict[TopicPartition, str] | None]:
    """Return who shall own what, and what changes hands where the algorithm tells that itself."""
    if not group.members:
        return {}, {}
    claims = settle_claims(group, members_in_order(group))
    racks = Racks(group)
    if group.subscriptions_are_equal:
        shares = _share_equally(group, claims, racks)
        return shares.assigned, shares.changing
    return balance_generally(group, claims, racks), None


def _changing_owner(
    group: Group, target: Mapping[str, list[TopicPartition]]
) -> dict[TopicPartition, str]:
    owned = {
        member.id: {(topic, p) for topic, ps in group.owned(member).items() for p in ps}
        for member in group.members
    }
    lost = {
        partition
        for member, partitions in owned.items()
        for partition in partitions.difference(target[member])
    }
    return {
        partition: member
        for member, partitions in target.items()
        for partition in partitions
        if partition in lost and partition not in owned[member]
    }


def _finished(group: Group, target: Mapping[str, list[TopicPartition]]) -> Assignment:
    return {member.id: by_topic(target[member.id]) for member in group.members}


@dataclass(frozen=True)
class EqualShares:
    """An assignment, and what changes hands in it.

    Attributes:
        assigned: Member id to partitions.
        changing: Partition to its new member, where another one still owns it.
    """

    assigned: dict[str, list[TopicPartition]]
    changing: dict[TopicPartition, str]


def _share_equally(group: Group, claims: Claims, racks: Racks) -> EqualShares:
    """Return equal shares that keep as much as the sizes (and racks) allow."""
    return _Dealing(group, claims, racks).run()


class _Dealing:
    """The state of one assignment.

    `small` and `large` are the two sizes; `larger_left` counts the members that may still become
    large. `below` are members with less than the small size, `at_small` members that have it and
    may still get one more.
    """

    def __init__(self, group: Group, claims: Claims, racks: Racks) -> None:
        self.claims = claims
        self.racks = racks
        self.everything = [
            (topic, partition)
            for topic in sorted(group.subscribed_topics(), key=sort_key)
            for partition in range(group.topics[topic])
        ]
        self.small, self.larger_left = divmod(len(self.everything), len(claims.owned))
        self.large = self.small + (self.larger_left > 0)
        self.assigned: dict[str, list[TopicPartition]] = {member: [] for member in claims.owned}
        self.revoked: dict[TopicPartition, str] = {}
        self.changing: dict[TopicPartition, str] = {}
        self.below: list[str] = []
        self.at_small: list[str] = []

    def run(self) -> EqualShares:
        self._keep_owned()
        kept = {partition for held in self.assigned.values() for partition in held}
        unassigned = [partition for partition in self.everything if partition not in kept]
        unassigned = self.racks.scarcest_first(unassigned)
        self.below.sort(key=sort_key)
        self.at_small.sort(key=sort_key)
        if self.racks.of_member:
            unassigned = self._deal_within_racks(unassigned)
        self._deal(unassigned)
        return EqualShares(self.assigned, self.changing)

    def _keep_owned(self) -> None:
        for member, owned in self.claims.owned.items():
            near = {tp for tp in owned if not self.racks.mismatch(member, tp)}
            self._revoke(member, owned - near)
            # A contested partition may still be held by a third, newer claimant.
            held = sorted(near - self.claims.contested, key=lambda tp: (tp[1], sort_key(tp[0])))
            if len(held) < self.small:
                self.assigned[member] = held
                self.below.append(member)
                continue
            stays_large = len(held) >= self.large and self.larger_left > 0
            size = self.large if stays_large else self.small
            self.assigned[member] = held[:size]
            self._revoke(member, held[size:])
            if stays_large:
                self._count_large()
            elif self.larger_left > 0:
                self.at_small.append(member)

    def _revoke(self, member: str, partitions: Iterable[TopicPartition]) -> None:
        self.revoked.update(dict.fromkeys(partitions, member))

    def _count_large(self) -> None:
        self.larger_left -= 1
        if self.larger_left == 0:
            self.at_small.clear()

    def _deal_within_racks(self, unassigned: Sequence[TopicPartition]) -> list[TopicPartition]:
        """Deal what has a replica in the rack of a member with room; return the rest."""
        rest = []
        turn = 0
        for partition in unassigned:
            place = self._next_near(partition, self.below, turn)
            if place is not None:
                turn = self._give_below(partition, place)
                continue
            place = self._next_near(partition, self.at_small, 0)
            if place is None:
                rest.append(partition)
                continue
            self._give(partition, self.at_small.pop(place))
            self._count_large()
        return rest

    def _next_near(
        self, partition: TopicPartition, members: Sequence[str], first: int
    ) -> int | None:
        """Return the place of the next member whose rack has a replica, going round from first."""
        replicas = self.racks.of_partition[partition]
        if not replicas:
            return None
        racks = self.racks.of_member
        places = (*range(first, len(members)), *range(first)) if first else range(len(members))
        return next((place for place in places if racks.get(members[place]) in replicas), None)

    def _give_below(self, partition: TopicPartition, place: int) -> int:
        """Give to a member below the small size; return whose turn it is among those left."""
        member = self.below[place]
        size = self._give(partition, member)
        if size >= self.small:
            del self.below[place]
            if size < self.large and self.larger_left > 0:
                self.at_small.append(member)
            place -= 1
        return (place + 1) % len(self.below) if self.below else 0

    def _deal(self, unassigned: Sequence[TopicPartition]) -> None:
        """Deal round by round up to the small size, then one more each to who may have it."""
        rest = deque(unassigned)
        while rest and self.below:
            for member in tuple(self.below):
                if not rest:
                    break
                if self._give(rest.popleft(), member) == self.small:
                    self.below.remove(member)
                    self.at_small.append(member)
        for partition, member in zip(rest, self.at_small, strict=False):
            self._give(partition, member)

    def _give(self, partition: TopicPartition, member: str) -> int:
        held = self.assigned[member]
        held.append(partition)
        owner = self.revoked.get(partition, member)
        if owner != member or partition in self.claims.contested:
            self.changing[partition] = member
        return len(held)
