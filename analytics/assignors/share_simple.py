"""Broker assignor `share-simple` of share groups (`SimpleAssignor`, 4.1 and later)."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from itertools import pairwise
from typing import Generic, TypeVar

from analytics.assignors.group import (
    Assignment,
    Group,
    Member,
    TopicPartition,
    by_topic,
    refuse_unknown_topics,
    subscribers_of,
)
from analytics.assignors.java_order import (
    in_hash_order,
    members_in_order,
    partitions_in_order,
    topic_id_hash,
    topics_in_order,
)

P = TypeVar("P", TopicPartition, int)

_WITH_ROOM = 1 / 0.75
"""Kafka makes a map for n keys with room for (n + 1) / 0.75 + 1 of them."""


def assign_share_simple(group: Group) -> Assignment:
    """Give every partition the same number of members, and every member the same of partitions.

    With M members and P partitions each partition is shared by ceil(M / P) of them. Members whose
    subscriptions differ are served topic by topic, each topic on its own.

    Raises:
        AssignmentRefusedError: A member wants a topic the brokers do not know.
    """
    refuse_unknown_topics(group)
    members = members_in_order(group)
    if not any(member.subscription for member in members):
        return {}
    parts = _together(group, members)
    if not group.subscriptions_are_equal:
        parts = _topic_by_topic(group, members)
    shared: dict[str, list[TopicPartition]] = {member.id: [] for member in group.members}
    for number, partition in parts:
        shared[members[number].id].append(partition)
    return {member: by_topic(partitions) for member, partitions in shared.items()}


def desired_sharing(members: int, partitions: int) -> int:
    """Return how many members shall share each partition."""
    return -(-members // partitions) if partitions else 0


def desired_counts(members: int, partitions: int) -> list[int]:
    """Return how many partitions each member shall get, in member order; in floats, as Kafka."""
    if members == 0:
        return []
    precise = desired_sharing(members, partitions) * partitions / members
    steps = [math.ceil(precise * place) for place in range(members + 1)]
    return [after - before for before, after in pairwise(steps)]


def _together(group: Group, members: Sequence[Member]) -> Iterable[tuple[int, TopicPartition]]:
    ids = group.ids_of_topics()
    hashes = {topic: topic_id_hash(topic_id) for topic, topic_id in ids.items()}
    topics = topics_in_order(ids, members[0].subscription_in(group.topics))
    sharing = _Sharing(
        range(len(members)),
        [(topic, p) for topic in topics for p in _assignable(group, topic)],
        lambda partition: 31 * hashes[partition[0]] + partition[1],
    )
    for number, member in enumerate(members):
        current = group.owned(member)
        for topic in topics_in_order(ids, current):
            sharing.keep(number, [(topic, p) for p in partitions_in_order(current[topic])])
    return sharing.run()


def _topic_by_topic(
    group: Group, members: Sequence[Member]
) -> Iterable[tuple[int, TopicPartition]]:
    owned: dict[str, dict[int, list[int]]] = {}
    for number, member in enumerate(members):
        for topic, partitions in group.owned(member).items():
            if topic in member.subscription:
                owned.setdefault(topic, {})[number] = partitions
    for topic, subscribers in subscribers_of(members).items():
        sharing = _Sharing(subscribers, _assignable(group, topic), int)
        for number, partitions in owned.get(topic, {}).items():
            sharing.keep(number, partitions_in_order(partitions))
        for number, partition in sharing.run():
            yield number, (topic, partition)


def _assignable(group: Group, topic: str) -> list[int]:
    partitions = range(group.topics[topic])
    if group.assignable is None:
        return list(partitions)
    allowed = group.assignable.get(topic, frozenset())
    return [partition for partition in partitions if partition in allowed]


class _Sharing(Generic[P]):
    """Some members sharing some partitions.

    Members are numbers in the order Kafka walks them; sets of such small numbers are walked
    ascending, sets of partitions by hash.
    """

    def __init__(
        self, members: Sequence[int], partitions: Sequence[P], hash_of: Callable[[P], int]
    ) -> None:
        self._partitions: dict[P, None] = dict.fromkeys(partitions)
        self._hash_of: Callable[[P], int] = hash_of
        self._sharing = desired_sharing(len(members), len(partitions))
        counts = desired_counts(len(members), len(partitions))
        self._desired = dict(zip(members, counts, strict=True))
        self._of_member: dict[int, dict[P, None]] = {}
        self._of_partition: dict[P, dict[int, None]] = {}

    def keep(self, member: int, partitions: Iterable[P]) -> None:
        """Start with what the member has; what cannot be assigned any more is let go."""
        for partition in partitions:
            if partition in self._partitions:
                self._of_member.setdefault(member, {})[partition] = None
                self._of_partition.setdefault(partition, {})[member] = None

    def run(self) -> Iterable[tuple[int, P]]:
        """Even out what is kept, fill up, and return pairs of member and partition."""
        self._shrink_members()
        self._shrink_partitions()
        for partition in self._partitions:
            self._of_partition.setdefault(partition, {})
        self._fill_up()
        return ((m, partition) for m, held in self._of_member.items() for partition in held)

    def _shrink_members(self) -> None:
        for member, held in self._of_member.items():
            excess = len(held) - self._desired[member]
            for partition in in_hash_order(held, self._hash_of)[: max(0, excess)]:
                self._part(member, partition)

    def _shrink_partitions(self) -> None:
        for partition, sharers in self._of_partition.items():
            excess = len(sharers) - self._sharing
            for member in in_hash_order(sharers, int)[: max(0, excess)]:
                self._part(member, partition)

    def _part(self, member: int, partition: P) -> None:
        del self._of_member[member][partition]
        del self._of_partition[partition][member]

    def _fill_up(self) -> None:
        """Give each partition the members it lacks, going round those that have room."""
        sizes = {member: len(held) for member, held in self._of_member.items()}
        unfilled = [m for m, wanted in self._desired.items() if sizes.get(m, 0) < wanted]
        room = int((len(self._partitions) + 1) * _WITH_ROOM + 1)
        # Kafka fills this map by computeIfAbsent, which puts new keys first in their bucket.
        latest_first = reversed(self._of_partition)
        turn = 0
        for partition in in_hash_order(latest_first, self._hash_of, capacity=room):
            sharers = self._of_partition[partition]
            idle = 0
            while len(sharers) < self._sharing and unfilled and idle <= len(unfilled):
                turn %= len(unfilled)
                member = unfilled[turn]
                if member in sharers:
                    # One full round without a taker: all that have room have it already.
                    idle += 1
                    turn += 1
                    continue
                idle = 0
                sharers[member] = None
                held = self._of_member.setdefault(member, {})
                held[partition] = None
                if len(held) < self._desired[member]:
                    turn += 1
                else:
                    del unfilled[turn]
