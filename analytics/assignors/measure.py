"""What is said about an assignment: sizes, what stayed, what nobody reads."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from analytics.assignors.group import Assignment, Group, TopicPartition


@dataclass(frozen=True)
class Outcome:
    """An assignment in figures.

    Attributes:
        sizes: Partitions of each member of the group, 0 for one that is left out.
        unmoved: Pairs of member and partition that were there before and still are.
        moved: Pairs that were there before and are not any more.
        unread: Partitions of subscribed topics that are nobody's. For `cooperative-sticky` these
            are the ones in transit.
    """

    sizes: Mapping[str, int]
    unmoved: int
    moved: int
    unread: tuple[TopicPartition, ...]

    @property
    def mean(self) -> float:
        """Partitions a member, on average; 0 without members."""
        return sum(self.sizes.values()) / len(self.sizes) if self.sizes else 0.0


def measure(group: Group, assignment: Assignment) -> Outcome:
    """Return the figures of an assignment of this group."""
    now = {(member, *partition) for member, partition in _pairs(assignment)}
    before = {
        (member.id, topic, partition)
        for member in group.members
        for topic, partitions in group.owned(member).items()
        for partition in partitions
    }
    shared = sharing(assignment)
    return Outcome(
        sizes={
            member.id: sum(map(len, assignment.get(member.id, {}).values()))
            for member in group.members
        },
        unmoved=len(now & before),
        moved=len(before - now),
        unread=tuple(
            (topic, partition)
            for topic in sorted(group.subscribed_topics())
            for partition in range(group.topics[topic])
            if (topic, partition) not in shared
        ),
    )


def sharing(assignment: Assignment) -> dict[TopicPartition, int]:
    """Return how many members have each assigned partition."""
    shared: dict[TopicPartition, int] = {}
    for _, partition in _pairs(assignment):
        shared[partition] = shared.get(partition, 0) + 1
    return shared


def _pairs(assignment: Assignment) -> list[tuple[str, TopicPartition]]:
    return [
        (member, (topic, partition))
        for member, topics in assignment.items()
        for topic, partitions in topics.items()
        for partition in partitions
    ]
