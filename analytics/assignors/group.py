"""What an assignor is asked: members with subscriptions, topics with partition counts."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from analytics.errors import GroupscopeError

Assignment = dict[str, dict[str, list[int]]]
"""Member id to topic to ascending partitions. A member may be there with nothing."""

TopicPartition = tuple[str, int]

TopicId = tuple[int, int]
"""A topic's id as its most and least significant 64 bits, signed, as Kafka's `Uuid` holds them."""


class AssignmentRefusedError(GroupscopeError):
    """The assignor gives no assignment for this group: Kafka's PartitionAssignorException."""


@dataclass(frozen=True)
class Member:
    """A member of a group, as it asks for partitions.

    Attributes:
        id: Member id.
        subscription: Names of the topics it wants.
        current: What it owned before, topic to partitions; empty for one that just joined.
        instance_id: `group.instance.id` of a static member.
        rack: `client.rack`; an empty one counts as none.
        generation: Generation in which it owned `current`. Only the client's sticky assignors
            read it, and only members that differ in it are told apart.
    """

    id: str
    subscription: frozenset[str]
    current: Mapping[str, tuple[int, ...]] = field(default_factory=dict)
    instance_id: str | None = None
    rack: str | None = None
    generation: int = 0


@dataclass(frozen=True)
class Group:
    """Everything an assignor looks at.

    Attributes:
        topics: Partition count of each topic the brokers know.
        members: The members; their order does not matter, their ids differ.
        assignable: Partitions a share group may be given, topic to partitions; None for all.
        replica_racks: Topic to the racks of each partition's replicas, partition 0 first.
        topic_ids: Topic ids, where known. The broker's assignors break ties by them; topics
            without one are taken to have ids that grow in the order of `topics`.
    """

    topics: Mapping[str, int]
    members: tuple[Member, ...]
    assignable: Mapping[str, frozenset[int]] | None = None
    replica_racks: Mapping[str, tuple[frozenset[str], ...]] | None = None
    topic_ids: Mapping[str, TopicId] = field(default_factory=dict)

    @property
    def subscriptions_are_equal(self) -> bool:
        """Whether all members want the same topics (Kafka: homogeneous)."""
        return len({member.subscription for member in self.members}) <= 1

    def subscribed_topics(self) -> list[str]:
        """Return the topics that a member wants and that have partitions, in order of `topics`."""
        wanted = frozenset[str]().union(*{member.subscription for member in self.members})
        return [topic for topic, count in self.topics.items() if count > 0 and topic in wanted]

    def owned(self, member: Member) -> dict[str, list[int]]:
        """Return the member's current partitions that exist, each once.

        Kafka trips over partitions that do not (a topic deleted and created again smaller): the
        sticky assignors hand them on as if they existed, the uniform one fails.
        """
        existing = {
            topic: sorted({p for p in partitions if 0 <= p < self.topics.get(topic, 0)})
            for topic, partitions in member.current.items()
        }
        return {topic: partitions for topic, partitions in existing.items() if partitions}

    def ids_of_topics(self) -> dict[str, TopicId]:
        """Return an id for every topic: the given one, else one by its place in `topics`."""
        return {
            topic: self.topic_ids.get(topic, (0, place))
            for place, topic in enumerate(self.topics, start=1)
        }


def by_topic(partitions: Iterable[TopicPartition]) -> dict[str, list[int]]:
    """Return partitions as an assignment holds them: by topic name, ascending."""
    grouped: dict[str, list[int]] = {}
    for topic, partition in sorted(partitions):
        grouped.setdefault(topic, []).append(partition)
    return grouped


def subscribers_of(members: Sequence[Member]) -> dict[str, list[int]]:
    """Return for each wanted topic the places of the members that want it, ascending.

    Topics may share one list: with equal subscriptions all do.
    """
    if len({member.subscription for member in members}) == 1:
        everybody = list(range(len(members)))
        return dict.fromkeys(members[0].subscription, everybody)
    places: dict[str, list[int]] = {}
    for place, member in enumerate(members):
        for topic in member.subscription:
            places.setdefault(topic, []).append(place)
    return places


def refuse_unknown_topics(group: Group) -> None:
    """Refuse a subscription to a topic the brokers do not know, as all broker assignors do.

    Raises:
        AssignmentRefusedError: Names the first such member and topic.
    """
    known: set[frozenset[str]] = set()
    for member in group.members:
        if member.subscription in known:
            continue
        known.add(member.subscription)
        unknown = sorted(member.subscription.difference(group.topics))
        if unknown:
            raise AssignmentRefusedError(
                f"member {member.id!r} is subscribed to topic {unknown[0]!r}, "
                "which the brokers do not know"
            )
