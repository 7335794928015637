"""Broker assignor `server-uniform` (`UniformAssignor`, the default of KIP-848).

Members with different subscriptions are served as `UniformHeterogeneousAssignmentBuilder` does it:
the smallest and the largest of a topic's subscribers are picked in the broker's order.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from analytics.assignors.group import (
    Assignment,
    Group,
    Member,
    TopicPartition,
    by_topic,
    copied_topics_in_order,
    members_in_order,
    partitions_in_order,
    refuse_unknown_topics,
    subscribers_of,
    subscription_in_order,
    topics_in_order,
)

Owned = dict[str, dict[str, list[int]]]
"""Member id to topic to partitions, topics and partitions in the order Kafka walks them."""

_PASSES = 16
"""Kafka's bound: chains of overlapping subscriptions may stay uneven after that."""
_NOBODY = -1


def assign_uniform(group: Group) -> Assignment:
    """Keep current partitions as far as sizes stay even, and fill up the rest.

    With equal subscriptions sizes differ by at most one, and no more partitions move than that
    takes. With different ones it is the sizes within each topic's subscribers that are evened
    out, in at most 16 passes. Racks play no part (4.0 and later).

    Raises:
        AssignmentRefusedError: A member wants a topic the brokers do not know.
    """
    refuse_unknown_topics(group)
    members = members_in_order(group)
    if not any(member.subscription for member in members):
        return {}
    owned = _owned_once(group, members)
    if not group.subscriptions_are_equal:
        return _balance_topics(group, members, owned)
    target = _fill_up(group, members, owned)
    return {member.id: by_topic(target[member.id]) for member in group.members}


def _owned_once(group: Group, members: Sequence[Member]) -> Owned:
    """Return what each member owns of what it wants; of two owners the first one counts.

    Kafka gives up on a partition with two owners, which its own records never hold.
    """
    ids = group.ids_of_topics()
    taken: set[TopicPartition] = set()
    owned: Owned = {}
    for member in members:
        current = group.owned(member)
        owned[member.id] = {}
        for topic in topics_in_order(ids, current):
            if topic in member.subscription:
                kept = [p for p in partitions_in_order(current[topic]) if (topic, p) not in taken]
                taken.update((topic, partition) for partition in kept)
                owned[member.id][topic] = kept
    return owned


def _fill_up(
    group: Group, members: Sequence[Member], owned: Owned
) -> dict[str, list[TopicPartition]]:
    """Cut members down to their quota in turn, then fill those below it in turn."""
    free = _free(group, owned)
    total = sum(group.topics[topic] for topic in members[0].subscription)
    small, extras = divmod(total, len(members))
    target: dict[str, list[TopicPartition]] = {}
    quotas: list[int] = []
    for place, member in enumerate(members):
        quota = small + (extras > 0)
        kept, revoked = _cut(owned[member.id], quota)
        free += revoked
        # An extra is passed on by who cannot use it at once, unless as many are left as members.
        if extras > 0 and len(kept) < quota and len(members) - place > extras:
            quota -= 1
        elif extras > 0:
            extras -= 1
        target[member.id] = kept
        quotas.append(quota)
    start = 0
    for member, quota in zip(members, quotas, strict=True):
        end = start + quota - len(target[member.id])
        target[member.id] += free[start:end]
        start = end
    return target


def _free(group: Group, owned: Owned) -> list[TopicPartition]:
    taken = {
        (topic, partition)
        for topics in owned.values()
        for topic, partitions in topics.items()
        for partition in partitions
    }
    wanted = copied_topics_in_order(
        group.ids_of_topics(), subscription_in_order(group.members[0].subscription)
    )
    return [
        (topic, partition)
        for topic in wanted
        for partition in range(group.topics[topic])
        if (topic, partition) not in taken
    ]


def _cut(
    owned: dict[str, list[int]], quota: int
) -> tuple[list[TopicPartition], list[TopicPartition]]:
    """Return what a member keeps and what it gives up."""
    held = [(topic, partition) for topic, partitions in owned.items() for partition in partitions]
    return held[:quota], held[quota:]


def _balance_topics(
    group: Group, members: Sequence[Member], owned: Mapping[str, Mapping[str, Sequence[int]]]
) -> Assignment:
    """Return an assignment that is even among the subscribers of each topic.

    Args:
        group: The group; every subscribed topic is known.
        members: Its members in the order Kafka walks them.
        owned: Member id to topic to partitions that it owns and still wants.
    """
    balancing = _Balancing(group, members, owned)
    balancing.give_out()
    balancing.even_out()
    assignment: Assignment = {member.id: {} for member in group.members}
    for topic in sorted(balancing.owners):
        for partition, number in enumerate(balancing.owners[topic].tolist()):
            assignment[members[number].id].setdefault(topic, []).append(partition)
    return assignment


class _Balancing:
    """Owner of each partition, as the number of the member, and the size of each member."""

    def __init__(
        self,
        group: Group,
        members: Sequence[Member],
        owned: Mapping[str, Mapping[str, Sequence[int]]],
    ) -> None:
        self.subscribers = {
            topic: np.array(places, np.int64) for topic, places in subscribers_of(members).items()
        }
        self.owners = {
            topic: np.full(group.topics[topic], _NOBODY, np.int64) for topic in self.subscribers
        }
        self.sizes = np.zeros(len(members), np.int64)
        for number, member in enumerate(members):
            for topic, partitions in owned[member.id].items():
                self.owners[topic][list(partitions)] = number
                self.sizes[number] += len(partitions)
        ids = group.ids_of_topics()
        # Topics with the most partitions for each subscriber first: the others can make up.
        self.topics = sorted(
            self.subscribers,
            key=lambda topic: (
                -group.topics[topic] / len(self.subscribers[topic]),
                len(self.subscribers[topic]),
                ids[topic],
            ),
        )

    def give_out(self) -> None:
        """Give partitions without owner to the subscribers with the fewest, topic by topic."""
        for topic in self.topics:
            owners = self.owners[topic]
            free = np.flatnonzero(owners == _NOBODY)
            if free.size:
                ladder = LoadLadder(self.sizes, self.subscribers[topic])
                for partition in free.tolist():
                    owners[partition] = taker = ladder.next_least()
                    self.sizes[taker] += 1

    def even_out(self) -> None:
        """Go round until no topic has changed since the last one that did, or 16 times."""
        topics = [topic for topic in self.topics if len(self.subscribers[topic]) > 1]
        unchanged = -1
        for topic in topics * _PASSES:
            unchanged = 0 if self._even_out_topic(topic) else unchanged + 1
            if unchanged >= len(topics) - 1:
                return

    def _even_out_topic(self, topic: str) -> bool:
        """Move partitions of one topic from the largest to the smallest of its subscribers."""
        subscribers = self.subscribers[topic]
        sizes = self.sizes[subscribers]
        if sizes.max() - sizes.min() <= 1:
            return False
        owners = self.owners[topic]
        if not owners.size:
            return False
        ladder = LoadLadder(self.sizes, subscribers)
        given_up = _PartitionsToGive(owners)
        moved = False
        while not ladder.is_level():
            giver = ladder.next_most(given_up.has)
            if giver is None:
                break
            partition = given_up.take(giver)
            taker = ladder.next_least()
            if ladder.is_level():
                break
            owners[partition] = taker
            self.sizes[giver] -= 1
            self.sizes[taker] += 1
            moved = True
        return moved


class _PartitionsToGive:
    """What each owner of a topic's partitions can give up, the highest partition first."""

    def __init__(self, owners: NDArray[np.int64]) -> None:
        order = np.argsort(owners, kind="stable")
        members, starts = np.unique(owners[order], return_index=True)
        parts = np.split(order, starts[1:])
        self._left = {
            member: part.tolist() for member, part in zip(members.tolist(), parts, strict=True)
        }

    def has(self, member: int) -> bool:
        return bool(self._left.get(member))

    def take(self, member: int) -> int:
        partition: int = self._left[member].pop()
        return partition


class LoadLadder:
    """Subscribers by size, taken in turn from both ends (Kafka's MemberAssignmentBalancer).

    The smallest ones form a group at one level: each of them is taken once, then the level rises
    by one and the group takes in the members it has reached. The largest ones likewise, downwards.
    """

    def __init__(self, sizes: NDArray[np.int64], members: NDArray[np.int64]) -> None:
        """Line the members up.

        Args:
            sizes: Size of every member of the group; looked at again as groups grow.
            members: Numbers of the members to line up, ascending and at least one.
        """
        self._sizes = sizes
        self._line: list[int] = members[np.argsort(sizes[members], kind="stable")].tolist()
        self._low_level = int(sizes[self._line[0]]) - 1
        self._low_end = 0
        self._low_next = 0
        self._high_level = int(sizes[self._line[-1]]) + 1
        self._high_start = self._high_end = len(self._line)
        self._high_next = len(self._line) - 1

    def is_level(self) -> bool:
        """Whether the two groups are at most one apart."""
        return self._high_level - self._low_level <= 1

    def next_least(self) -> int:
        """Return the next member to be given a partition."""
        line = self._line
        if self._low_next >= self._low_end:
            self._low_level += 1
            while self._low_end < len(line) and self._sizes[line[self._low_end]] == self._low_level:
                self._low_end += 1
            self._low_next = 0
        member = line[self._low_next]
        self._low_next += 1
        return member

    def next_most(self, can_give: Callable[[int], bool]) -> int | None:
        """Return the next member to give a partition up; None when nobody can.

        A member that cannot changes places with the end of its group and drops out.
        """
        line = self._line
        while (place := self._high_place()) is not None:
            member = line[place]
            if can_give(member):
                return member
            self._high_end -= 1
            line[place], line[self._high_end] = line[self._high_end], member
        return None

    def _high_place(self) -> int | None:
        if self._high_next < self._high_start:
            self._lower_high_group()
        if self._high_next < 0:
            return None
        self._high_next -= 1
        return self._high_next + 1

    def _lower_high_group(self) -> None:
        line, start = self._line, self._high_start
        if self._high_end <= start and start > 0:
            # Everybody has dropped out: go on at the level of the next one, wherever that is.
            self._high_level = int(self._sizes[line[start - 1]])
        else:
            self._high_level -= 1
        while start > 0 and self._sizes[line[start - 1]] == self._high_level:
            start -= 1
        self._high_start = start
        self._high_next = self._high_end - 1
