"""Where members and replicas are, as the client assignors see it (KIP-881)."""

from __future__ import annotations

from collections.abc import Collection, Iterable

from analytics.assignors.group import Group, TopicPartition


def racks_of(group: Group, topic: str) -> tuple[frozenset[str], ...]:
    """Return the racks of the replicas of each partition of a topic; nowhere where not known."""
    known = (group.replica_racks or {}).get(topic, ())
    count = group.topics[topic]
    return known[:count] + (frozenset(),) * (count - len(known))


def racks_matter(members: Collection[str], replicas: Iterable[frozenset[str]]) -> bool:
    """Whether racks are looked at: some member is where replicas are, and not all are everywhere.

    Args:
        members: Racks of the members.
        replicas: Racks of the replicas, one set a partition.
    """
    distinct = set(replicas)
    everywhere = frozenset[str]().union(*distinct)
    return not everywhere.isdisjoint(members) and distinct != {everywhere}


class Racks:
    """The racks of one group, for the sticky assignors.

    Attributes:
        of_member: Member id to rack, of members that have one; empty when racks do not matter.
        of_partition: Racks of the replicas; empty when racks do not matter.
    """

    def __init__(self, group: Group) -> None:
        of_member = {member.id: member.rack for member in group.members if member.rack}
        of_partition: dict[TopicPartition, frozenset[str]] = {}
        if of_member:
            for topic in group.subscribed_topics():
                for partition, racks in enumerate(racks_of(group, topic)):
                    of_partition[topic, partition] = racks
        matter = racks_matter(set(of_member.values()), of_partition.values())
        self.of_member: dict[str, str] = of_member if matter else {}
        self.of_partition: dict[TopicPartition, frozenset[str]] = of_partition if matter else {}
        self._near = _members_near(of_member.values(), of_partition)

    def mismatch(self, member: str, partition: TopicPartition) -> bool:
        """Whether the member has a rack and the partition no replica in it."""
        rack = self.of_member.get(member)
        return rack is not None and rack not in self.of_partition.get(partition, frozenset())

    def scarcest_first(self, partitions: list[TopicPartition]) -> list[TopicPartition]:
        """Return the partitions by how many members are in their racks, fewest first.

        Kafka sorts so whenever a member has a rack, even where racks do not matter.
        """
        return sorted(partitions, key=lambda partition: self._near.get(partition, 0))


def _members_near(
    racks: Iterable[str], of_partition: dict[TopicPartition, frozenset[str]]
) -> dict[TopicPartition, int]:
    members: dict[str, int] = {}
    for rack in racks:
        members[rack] = members.get(rack, 0) + 1
    return {
        partition: sum(members.get(rack, 0) for rack in replicas)
        for partition, replicas in of_partition.items()
    }
