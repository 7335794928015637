"""Client assignor `roundrobin`: partitions dealt one by one (`RoundRobinAssignor`)."""

from __future__ import annotations

from bisect import bisect_left

from analytics.assignors.group import Assignment, Group, TopicPartition, by_topic, subscribers_of
from analytics.assignors.java_order import sort_key
from analytics.assignors.member_order import static_first


def assign_roundrobin(group: Group) -> Assignment:
    """Deal all partitions, by topic and number, to the members in turn.

    Members not subscribed to a partition's topic are passed over, and the turn goes on after the
    one that took it. With equal subscriptions sizes differ by at most one.
    """
    circle = static_first(group.members)
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
