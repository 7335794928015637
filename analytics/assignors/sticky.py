"""Client assignors `sticky` and `cooperative-sticky`: even sizes, as few moves as possible.

Where all members want the same topics (`ConstrainedAssignmentBuilder`), everybody gets the same
number of partitions, some one more; who owns enough keeps that much, and the rest is dealt to who
has less.

Where they want different ones (`GeneralAssignmentBuilder`), owned partitions stay, free ones go to
the subscriber with the fewest, then partitions move one by one to subscribers that have at least
two less, until none can. Kafka asks before every move whether the whole group is balanced, which
takes minutes for a thousand members; here a topic is looked at again only when the size of one of
its subscribers has changed, which makes the same moves in the same order. Who gave what to whom is
kept as Kafka's `PartitionMovements` has it.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from analytics.assignors.group import (
    Assignment,
    Claims,
    Group,
    TopicPartition,
    bucket,
    by_topic,
    members_in_order,
    settle_claims,
    sort_key,
    string_hash,
    subscribers_of,
    table_size,
)
from analytics.assignors.racks import Racks

_Target = dict[str, list[TopicPartition]]
_PASSES_WITHOUT_GAIN = 20
"""Kafka's swap of an earlier move may undo progress, in theory for ever; then we stop."""
_Indices = NDArray[np.int64]
_Pair = tuple[str, str]


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
    return _balance_generally(group, claims, racks), None


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


def _balance_generally(
    group: Group, claims: Claims, racks: Racks
) -> dict[str, list[TopicPartition]]:
    """Return member id to partitions, every partition of every subscribed topic given out."""
    return _Balancing(group, claims, racks).run()


class _Balancing:
    """The state of one assignment.

    Members are numbered in the order of their ids, so that among equals the first is the one
    Kafka takes. `sizes` counts the partitions of each.
    """

    def __init__(self, group: Group, claims: Claims, racks: Racks) -> None:
        self.racks = racks
        self.ids = sorted(claims.owned, key=sort_key)
        numbers = {member: number for number, member in enumerate(self.ids)}
        wants = {member.id: member.subscription for member in group.members}
        places = subscribers_of(sorted(group.members, key=lambda member: numbers[member.id]))
        self.subscribers: dict[str, _Indices] = {
            topic: np.array(places[topic], np.int64) for topic in group.subscribed_topics()
        }
        # Topics few members want come first: they have the least choice.
        self.topics = sorted(
            self.subscribers, key=lambda topic: (len(self.subscribers[topic]), sort_key(topic))
        )
        self.counts = {topic: group.topics[topic] for topic in self.topics}
        self.owner: dict[TopicPartition, int] = {}
        self.must_revoke = False
        for member, owned in claims.owned.items():
            self._keep(numbers[member], owned, wants[member])
        self.sizes: _Indices = np.bincount(
            np.fromiter(self.owner.values(), np.int64), minlength=len(self.ids)
        ).astype(np.int64)
        self.older = {
            partition: numbers[member]
            for partition, member in claims.older.items()
            if partition[0] in wants[member]
        }
        self.movements = _Movements()
        self._number_topics()

    def _keep(self, member: int, owned: Iterable[TopicPartition], topics: frozenset[str]) -> None:
        for partition in owned:
            if partition[0] in topics and not self.racks.mismatch(self.ids[member], partition):
                self.owner[partition] = member
            else:
                self.must_revoke = True

    def _number_topics(self) -> None:
        """Note which topics can move partitions at all, and which of them each member wants."""
        self.movable = [topic for topic in self.topics if len(self.subscribers[topic]) > 1]
        wanted: list[list[int]] = [[] for _ in self.ids]
        for number, topic in enumerate(self.movable):
            for member in self.subscribers[topic].tolist():
                wanted[member].append(number)
        self.wanted = [np.array(numbers, np.int64) for numbers in wanted]
        self.changed = np.ones(len(self.movable), np.bool_)

    def run(self) -> dict[str, list[TopicPartition]]:
        starts_empty = not self.owner
        everything = {topic: list(range(self.counts[topic])) for topic in self.topics}
        free = {
            topic: [p for p in partitions if (topic, p) not in self.owner]
            for topic, partitions in everything.items()
        }
        self._give_out(free)
        sizes, owner = self.sizes.copy(), self.owner.copy()
        if not self.must_revoke:
            # First try to balance by what is new anyway.
            self._move(free)
        moved = self._move(everything)
        if moved and not starts_empty and _spread(self.sizes) >= _spread(sizes):
            self.owner = owner
        assigned: dict[str, list[TopicPartition]] = {member: [] for member in self.ids}
        for partition, member in self.owner.items():
            assigned[self.ids[member]].append(partition)
        return assigned

    def _give_out(self, free: dict[str, list[int]]) -> None:
        """Give every free partition to the subscriber with the fewest, rack by rack first."""
        rest = [(topic, partition) for topic in self.topics for partition in free[topic]]
        if self.racks.of_member:
            rest = [partition for partition in rest if not self._give_near(partition)]
        for partition in rest:
            self._give(partition, self._least(self.subscribers[partition[0]]))

    def _give_near(self, partition: TopicPartition) -> bool:
        near = [
            member
            for member in self.subscribers[partition[0]].tolist()
            if not self.racks.mismatch(self.ids[member], partition)
        ]
        if near:
            self._give(partition, self._least(np.array(near, np.int64)))
        return bool(near)

    def _least(self, members: _Indices) -> int:
        return int(members[self.sizes[members].argmin()])

    def _give(self, partition: TopicPartition, member: int) -> None:
        self.owner[partition] = member
        self.sizes[member] += 1

    def _move(self, candidates: dict[str, list[int]]) -> bool:
        """Move candidate partitions, pass by pass, until no move evens out a topic's members."""
        any_moved = False
        self.changed[:] = True
        best = int(self.sizes @ self.sizes)
        patience = _PASSES_WITHOUT_GAIN
        while patience and self._pass(candidates):
            any_moved = True
            unevenness = int(self.sizes @ self.sizes)
            patience = _PASSES_WITHOUT_GAIN if unevenness < best else patience - 1
            best = min(best, unevenness)
        return any_moved

    def _pass(self, candidates: dict[str, list[int]]) -> bool:
        moved = False
        for number, topic in enumerate(self.movable):
            if self.changed[number]:
                self.changed[number] = False
                moved |= self._pass_topic(topic, candidates[topic])
        return moved

    def _pass_topic(self, topic: str, partitions: Sequence[int]) -> bool:
        subscribers = self.subscribers[topic]
        moved = False
        smallest, largest = self._extremes(subscribers)
        for number in partitions:
            if largest - smallest < 2:
                break
            partition = (topic, number)
            size = self.sizes[self.owner[partition]]
            if size - smallest < 2:
                continue
            older = self.older.get(partition)
            give_back = older is not None and size - self.sizes[older] >= 2
            self._hand_over(partition, older if give_back else self._least(subscribers))
            moved = True
            smallest, largest = self._extremes(subscribers)
        return moved

    def _extremes(self, members: _Indices) -> tuple[int, int]:
        sizes = self.sizes[members]
        return int(sizes.min()), int(sizes.max())

    def _hand_over(self, partition: TopicPartition, taker: int | None) -> None:
        assert taker is not None
        giver = self.owner[partition]
        partition = self.movements.replacement(partition, self.ids[giver], self.ids[taker])
        giver = self.owner[partition]
        self.movements.note(partition, self.ids[giver], self.ids[taker])
        self.owner[partition] = taker
        self.sizes[giver] -= 1
        self.sizes[taker] += 1
        for member in (giver, taker):
            self.changed[self.wanted[member]] = True


def _spread(sizes: Sequence[int] | _Indices) -> int:
    """Return the sum of the differences of sizes over all pairs of members: Kafka's score."""
    ascending = np.sort(np.asarray(sizes, np.int64))
    places = np.arange(len(ascending), dtype=np.int64)
    return int(ascending @ (2 * places - len(ascending) + 1))


class _Movements:
    """Remembers moves, so that one is undone rather than answered by a move back.

    If member A gave a partition of a topic to B, and now B shall give another one of the same
    topic to A, the first one goes back instead: both keep more of what they had.
    """

    def __init__(self) -> None:
        self._pair_of: dict[TopicPartition, _Pair] = {}
        self._moved: dict[str, dict[_Pair, _MovedPartitions]] = {}

    def replacement(self, partition: TopicPartition, giver: str, taker: str) -> TopicPartition:
        """Return the partition that shall really go, given that this one would."""
        origin = self._pair_of.get(partition, (giver, ""))[0]
        back = self._moved.get(partition[0], {}).get((taker, origin))
        return back.first() if back else partition

    def note(self, partition: TopicPartition, giver: str, taker: str) -> None:
        """Remember a move; one that brings a partition back to its origin is forgotten."""
        earlier = self._pair_of.pop(partition, None)
        pairs = self._moved.setdefault(partition[0], {})
        if earlier is not None:
            pairs[earlier].remove(partition)
            if not pairs[earlier]:
                del pairs[earlier]
        origin = earlier[0] if earlier is not None else giver
        if origin != taker:
            pair = (origin, taker)
            self._pair_of[partition] = pair
            pairs.setdefault(pair, _MovedPartitions(partition[0])).add(partition)


class _MovedPartitions:
    """Partitions of one topic, in a set that Java walks from the first bucket on."""

    def __init__(self, topic: str) -> None:
        self._topic_hash = string_hash(topic)
        self._partitions: dict[TopicPartition, None] = {}
        self._most = 0

    def __len__(self) -> int:
        return len(self._partitions)

    def add(self, partition: TopicPartition) -> None:
        self._partitions[partition] = None
        self._most = max(self._most, len(self._partitions))

    def remove(self, partition: TopicPartition) -> None:
        del self._partitions[partition]

    def first(self) -> TopicPartition:
        buckets = table_size(self._most)
        return min(self._partitions, key=lambda tp: bucket(self._hash(tp[1]), buckets))

    def _hash(self, partition: int) -> int:
        return 31 * (31 + partition) + self._topic_hash
