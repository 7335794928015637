"""Where members and replicas are, as the client assignors see it (KIP-881).

`range` serves those of a partition's rack first, within the same sizes.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass, field
from itertools import islice

from analytics.assignors.group import Group, Member, TopicPartition, subscribers_of


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


@dataclass
class TopicShares:
    """One topic while it is handed out.

    Attributes:
        name: Topic name.
        racks: Member id to rack (None without), in the order members are served.
        replicas: Racks of each partition's replicas; empty when no subscriber has a rack.
        needs_racks: Whether it makes a difference which member gets which partition.
        share: What every subscriber gets at least.
        extras: How many subscribers may still get one more.
        left: Partitions not handed out yet, ascending (a dict for its order).
        assigned: Member id to partitions.
    """

    name: str
    racks: dict[str, str | None]
    replicas: Sequence[frozenset[str]]
    needs_racks: bool
    share: int
    extras: int
    left: dict[int, None]
    assigned: dict[str, list[int]] = field(default_factory=dict)

    @classmethod
    def of(cls, group: Group, topic: str, racks: dict[str, str | None]) -> TopicShares:
        """Return the topic with nothing handed out."""
        count = group.topics[topic]
        known = {rack for rack in racks.values() if rack}
        replicas = racks_of(group, topic) if known else ()
        share, extras = divmod(count, len(racks))
        return cls(
            name=topic,
            racks=racks,
            replicas=replicas,
            needs_racks=racks_matter(known, replicas),
            share=share,
            extras=extras,
            left=dict.fromkeys(range(count)),
        )

    def room(self, member: str) -> int:
        """Return how many more partitions the member may get."""
        return self.share + (self.extras > 0) - len(self.assigned.get(member, ()))

    def matches(self, member: str, partition: int) -> bool:
        """Whether the partition has a replica in the member's rack, or the member has no rack."""
        rack = self.racks[member]
        return rack is None or (bool(self.replicas) and rack in self.replicas[partition])

    def give(self, member: str, partitions: Iterable[int]) -> None:
        """Hand partitions to the member; the one above its share uses up an extra."""
        held = self.assigned.setdefault(member, [])
        for partition in partitions:
            held.append(partition)
            del self.left[partition]
        self.extras -= len(held) > self.share

    def assign_matching(self) -> None:
        """Hand each member partitions that match its rack, up to what it may get."""
        self._assign(self.matches)

    def assign_rest(self) -> None:
        """Hand each member the next partitions, up to what it may get."""
        self._assign(lambda _member, _partition: True)

    def _assign(self, may_have: Callable[[str, int], bool]) -> None:
        for member in self.racks:
            if not self.left:
                return
            wanted = (partition for partition in self.left if may_have(member, partition))
            chosen = list(islice(wanted, max(0, self.room(member))))
            if chosen:
                self.give(member, chosen)


def shares_of(group: Group, members: Sequence[Member]) -> list[TopicShares]:
    """Return all subscribed topics, with nothing handed out.

    Args:
        group: The group.
        members: Its members, in the order they are served.
    """
    subscribers = subscribers_of(members)
    racks_by_list: dict[int, dict[str, str | None]] = {}
    shares = []
    for topic in group.subscribed_topics():
        places = subscribers[topic]
        # Topics that share the list of their subscribers share their racks too.
        racks = racks_by_list.get(id(places))
        if racks is None:
            racks = {members[place].id: members[place].rack or None for place in places}
            racks_by_list[id(places)] = racks
        shares.append(TopicShares.of(group, topic, racks))
    return shares


def assign_rack_matches(topics: Sequence[TopicShares]) -> None:
    """Hand out what matches racks; topics with equal members and counts go together.

    Topics are taken together so that a member gets the same partition numbers of each, which
    is what joins of co-partitioned topics need.
    """
    members: dict[int, frozenset[str]] = {}
    alike: dict[tuple[frozenset[str], int], list[TopicShares]] = {}
    for topic in topics:
        if id(topic.racks) not in members:
            members[id(topic.racks)] = frozenset(topic.racks)
        alike.setdefault((members[id(topic.racks)], len(topic.replicas)), []).append(topic)
    for together in alike.values():
        if len(together) > 1:
            _assign_together(together)
        elif together[0].needs_racks:
            together[0].assign_matching()


def _assign_together(topics: Sequence[TopicShares]) -> None:
    unfilled = list(topics[0].racks)
    racks = topics[0].racks
    for partition in range(len(topics[0].replicas)):
        near = frozenset.intersection(*(topic.replicas[partition] for topic in topics))
        for member in unfilled:
            rack = racks[member]
            if (rack is None or rack in near) and all(t.room(member) > 0 for t in topics):
                for topic in topics:
                    topic.give(member, [partition])
                if all(topic.room(member) <= 0 for topic in topics):
                    unfilled.remove(member)
                break
