"""What members say they owned, with contradictions between them settled (`AbstractStickyAssignor`).

A member that was away keeps claiming what it owned in an older generation; two members may claim
the same partition.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from analytics.assignors.group import Group, Member, TopicPartition


@dataclass(frozen=True)
class Claims:
    """Who owned what, no partition twice.

    Attributes:
        owned: Member id to partitions, in the order Kafka walks the members.
        contested: Partitions that two members claimed for the same generation: neither keeps
            them.
        older: Member id by partition, for partitions claimed from an older generation than the
            newest: whom the general algorithm would rather give them back to.
    """

    owned: dict[str, set[TopicPartition]]
    contested: set[TopicPartition]
    older: dict[TopicPartition, str]


def settle_claims(group: Group, members: Sequence[Member]) -> Claims:
    """Return who owned what: the newer generation wins, a tie loses the partition to nobody.

    Args:
        group: The group.
        members: Its members, in the order Kafka walks them.
    """
    topics = set(group.subscribed_topics())
    owned: dict[str, set[TopicPartition]] = {member.id: set() for member in members}
    contested: set[TopicPartition] = set()
    holder: dict[TopicPartition, Member] = {}
    for member in members:
        for partition in _claimed(group, member, topics):
            rival = holder.get(partition)
            if rival is not None and rival.generation > member.generation:
                continue
            if rival is not None:
                owned[rival.id].discard(partition)
            if rival is not None and rival.generation == member.generation:
                contested.add(partition)
            else:
                owned[member.id].add(partition)
            holder[partition] = member
    return Claims(owned, contested, _older(group, members, topics))


def _claimed(group: Group, member: Member, topics: set[str]) -> list[TopicPartition]:
    return [
        (topic, partition)
        for topic, partitions in group.owned(member).items()
        if topic in topics
        for partition in partitions
    ]


def _older(group: Group, members: Sequence[Member], topics: set[str]) -> dict[TopicPartition, str]:
    newest = max((member.generation for member in members), default=0)
    older: dict[TopicPartition, Member] = {}
    for member in members:
        if member.generation == newest:
            continue
        for partition in _claimed(group, member, topics):
            if partition not in older or member.generation > older[partition].generation:
                older[partition] = member
    return {partition: member.id for partition, member in older.items()}
