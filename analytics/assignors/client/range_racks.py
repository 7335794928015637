"""Racks in the client's `range` assignor (KIP-881): who is served first, within the same sizes."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from itertools import islice

from analytics.assignors.client.racks import racks_matter, racks_of
from analytics.assignors.group import Group, Member, subscribers_of


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
