"""Assignors that serve members in one order: range, roundrobin, and `share-simple` of brokers."""

from __future__ import annotations

import math
from bisect import bisect_left
from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import pairwise
from typing import Generic, TypeVar

from analytics.assignors.group import (
    Assignment,
    Group,
    Member,
    TopicPartition,
    by_topic,
    in_hash_order,
    members_in_order,
    partitions_in_order,
    refuse_unknown_topics,
    sort_key,
    subscribers_of,
    subscription_in_order,
    table_size,
    topic_id_hash,
    topics_in_order,
)
from analytics.assignors.racks import assign_rack_matches, shares_of

# Assignors that serve members in one order: `range`, `server-range` and `roundrobin`.
#
# Both `RangeAssignor`s cut each topic into runs, `RoundRobinAssignor` deals partitions one by
# one. The order is that of `MemberInfo`, and of the broker's `RangeAssignor`.


def assign_range(group: Group) -> Assignment:
    """Cut each topic into runs for its subscribers, the longer runs first (client).

    With racks (KIP-881), replicas in a member's rack are handed out first, within the same
    sizes, so a member's partitions need not be a run. Unknown topics are left out.
    """
    shares = shares_of(group, _static_first(group.members))
    if any(topic.needs_racks for topic in shares):
        assign_rack_matches(shares)
    assignment: Assignment = {member.id: {} for member in group.members}
    for topic in sorted(shares, key=lambda topic: topic.name):
        topic.assign_rest()
        for member, partitions in topic.assigned.items():
            assignment[member][topic.name] = sorted(partitions)
    return assignment


def assign_server_range(group: Group) -> Assignment:
    """Cut each topic into runs for its subscribers, the longer runs first (broker).

    Racks and current partitions play no part.

    Raises:
        AssignmentRefusedError: A member wants a topic the brokers do not know.
    """
    refuse_unknown_topics(group)
    served = _static_first(group.members)
    subscribers = subscribers_of(served)
    assignment: Assignment = {member.id: {} for member in group.members}
    for topic in sorted(group.subscribed_topics()):
        count = group.topics[topic]
        shorter, longer_runs = divmod(count, len(subscribers[topic]))
        start = 0
        for turn, place in enumerate(subscribers[topic]):
            end = start + shorter + (turn < longer_runs)
            assignment[served[place].id][topic] = list(range(start, end))
            start = end
            if start == count:
                break
    return assignment


def assign_roundrobin(group: Group) -> Assignment:
    """Deal all partitions, by topic and number, to the members in turn.

    Members not subscribed to a partition's topic are passed over, and the turn goes on after the
    one that took it. With equal subscriptions sizes differ by at most one.
    """
    circle = _static_first(group.members)
    dealt: dict[str, list[TopicPartition]] = {member.id: [] for member in group.members}
    subscribers = subscribers_of(circle)
    turn = 0
    for topic in sorted(group.subscribed_topics(), key=sort_key):
        takers = subscribers[topic]
        first = bisect_left(takers, turn)
        for partition in range(group.topics[topic]):
            turn = takers[(first + partition) % len(takers)]
            dealt[circle[turn].id].append((topic, partition))
        turn = (turn + 1) % len(circle)
    return {member: by_topic(partitions) for member, partitions in dealt.items()}


def _static_first(members: Iterable[Member]) -> list[Member]:
    """Return static members by instance id, then the others by member id.

    So a restarted static member, whose member id is new, gets its old partitions again.
    """
    return sorted(members, key=_place)


def _place(member: Member) -> tuple[bool, bytes, bytes]:
    is_dynamic = member.instance_id is None
    return is_dynamic, sort_key(member.instance_id or ""), sort_key(member.id)


# Broker assignor `share-simple` of share groups (`SimpleAssignor`, 4.1 and later).

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
    topics = subscription_in_order(members[0].subscription)
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
    # Who no longer wants a topic counts too: it gives all of it up, but its sets were filled.
    owned: dict[str, dict[int, list[int]]] = {}
    for number, member in enumerate(members):
        for topic, partitions in group.owned(member).items():
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
        most = {partition: len(sharers) for partition, sharers in self._of_partition.items()}
        self._shrink_members()
        self._shrink_partitions(most)
        for partition in self._partitions:
            self._of_partition.setdefault(partition, {})
        self._fill_up()
        return ((m, partition) for m, held in self._of_member.items() for partition in held)

    def _shrink_members(self) -> None:
        for member, held in self._of_member.items():
            excess = len(held) - self._desired.get(member, 0)
            for partition in in_hash_order(held, self._hash_of)[: max(0, excess)]:
                self._part(member, partition)

    def _shrink_partitions(self, most: Mapping[P, int]) -> None:
        """Let the first of too many sharers go; a set that once held `most` is still that wide."""
        for partition, sharers in self._of_partition.items():
            excess = len(sharers) - self._sharing
            width = table_size(most[partition])
            for member in in_hash_order(sharers, int, capacity=width)[: max(0, excess)]:
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
        # A round that gave nobody anything is the last one: whatever lacks members keeps lacking.
        given_in_round = False
        for partition in in_hash_order(latest_first, self._hash_of, capacity=room):
            sharers = self._of_partition[partition]
            while len(sharers) < self._sharing and unfilled:
                if turn == len(unfilled):
                    if not given_in_round:
                        break
                    turn, given_in_round = 0, False
                member = unfilled[turn]
                if member in sharers:
                    turn += 1
                    continue
                given_in_round = True
                sharers[member] = None
                held = self._of_member.setdefault(member, {})
                held[partition] = None
                if len(held) < self._desired[member]:
                    turn += 1
                else:
                    del unfilled[turn]
