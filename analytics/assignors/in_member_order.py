"""Assignors that serve members in one order: `range`, `server-range` and `roundrobin`.

Both `RangeAssignor`s cut each topic into runs, `RoundRobinAssignor` deals partitions one by one.
The order is that of `MemberInfo`, and of the broker's `RangeAssignor`.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable

from analytics.assignors.group import (
    Assignment,
    Group,
    Member,
    TopicPartition,
    by_topic,
    refuse_unknown_topics,
    subscribers_of,
)
from analytics.assignors.java_order import sort_key
from analytics.assignors.racks import assign_rack_matches, shares_of


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
