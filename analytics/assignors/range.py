"""Assignors `range` and `server-range`: each topic cut into runs (both `RangeAssignor`s)."""

from __future__ import annotations

from analytics.assignors.group import (
    Assignment,
    Group,
    refuse_unknown_topics,
    subscribers_of,
)
from analytics.assignors.member_order import static_first
from analytics.assignors.racks import assign_rack_matches, shares_of


def assign_range(group: Group) -> Assignment:
    """Cut each topic into runs for its subscribers, the longer runs first (client).

    With racks (KIP-881), replicas in a member's rack are handed out first, within the same
    sizes, so a member's partitions need not be a run. Unknown topics are left out.
    """
    shares = shares_of(group, static_first(group.members))
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
    served = static_first(group.members)
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
