"""Assignors `range` and `server-range`: each topic cut into runs (both `RangeAssignor`s)."""

from __future__ import annotations

from analytics.assignors.group import (
    Assignment,
    Group,
    Member,
    by_topic,
    refuse_unknown_topics,
)
from analytics.assignors.member_order import static_first
from analytics.assignors.range_racks import TopicShares, assign_rack_matches


def assign_range(group: Group) -> Assignment:
    """Cut each topic into runs for its subscribers, the longer runs first (client).

    With racks (KIP-881), replicas in a member's rack are handed out first, within the same
    sizes, so a member's partitions need not be a run. Unknown topics are left out.
    """
    shares = [
        TopicShares.of(group, topic, _subscribers(group, topic))
        for topic in group.subscribed_topics()
    ]
    if any(topic.needs_racks for topic in shares):
        assign_rack_matches(shares)
    for topic in shares:
        topic.assign_rest()
    return {
        member.id: by_topic(
            (topic.name, partition)
            for topic in shares
            for partition in topic.assigned.get(member.id, ())
        )
        for member in group.members
    }


def assign_server_range(group: Group) -> Assignment:
    """Cut each topic into runs for its subscribers, the longer runs first (broker).

    Racks and current partitions play no part.

    Raises:
        AssignmentRefusedError: A member wants a topic the brokers do not know.
    """
    refuse_unknown_topics(group)
    assignment: Assignment = {member.id: {} for member in group.members}
    for topic in sorted(group.subscribed_topics()):
        subscribers = _subscribers(group, topic)
        shorter, longer_runs = divmod(group.topics[topic], len(subscribers))
        start = 0
        for place, member in enumerate(subscribers):
            end = start + shorter + (place < longer_runs)
            if end > start:
                assignment[member.id][topic] = list(range(start, end))
            start = end
    return assignment


def _subscribers(group: Group, topic: str) -> list[Member]:
    return static_first(member for member in group.members if topic in member.subscription)
