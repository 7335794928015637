"""What an assignor is asked and answers: members, what they owned, Java's order, measures."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, TypeVar

from analytics.errors import GroupscopeError

if TYPE_CHECKING:
    from numpy.typing import NDArray

# What an assignor is asked: members with subscriptions, topics with partition counts.

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


# The order in which Java walks a HashMap, where Kafka's answer hangs on it.
#
# A HashMap has a power of two of buckets and walks them in turn; what shares a bucket comes in
# the order it was put in. (Buckets of eight and more become trees, which may turn that last
# order; keys that collide so often do not occur among member ids.) Kafka hands the members to
# every assignor in a `HashMap<String, ...>`, so their order is known offline too.

T = TypeVar("T")
Number = TypeVar("Number", int, "NDArray[Any]")
"""A number, or a column of them."""

_WORD = 0xFFFF_FFFF
_DEFAULT_CAPACITY = 16


def in_hash_order(
    keys: Iterable[T], hash_of: Callable[[T], int], *, capacity: int = _DEFAULT_CAPACITY
) -> list[T]:
    """Return distinct keys in the order a HashMap walks them.

    Args:
        keys: In the order they are put in.
        hash_of: Java's `hashCode` of a key; only its low 32 bits count.
        capacity: What the map's constructor was given.
    """
    put = list(keys)
    buckets = table_size(len(put), capacity)
    return sorted(put, key=lambda key: bucket(hash_of(key), buckets))


def table_size(count: int, capacity: int = _DEFAULT_CAPACITY) -> int:
    """Return the number of buckets of a map that has held `count` keys: it doubles above 3/4."""
    buckets = 1
    while buckets < capacity:
        buckets *= 2
    while count > buckets * 3 // 4:
        buckets *= 2
    return buckets


def bucket(hash_code: Number, buckets: Number) -> Number:
    """Return the bucket of a hash; Java folds the upper half into the lower one first."""
    unsigned = hash_code & _WORD
    found: Number = (unsigned ^ (unsigned >> 16)) & (buckets - 1)
    return found


def copied_set_capacity(count: int) -> int:
    """Return the capacity of a HashSet made from a collection of `count` elements."""
    return max(int(count / 0.75) + 1, _DEFAULT_CAPACITY)


def sort_key(text: str) -> bytes:
    """Return a key that sorts strings as Java's `compareTo` does: by UTF-16 code unit."""
    return text.encode("utf-16-be", "surrogatepass")


def string_hash(text: str) -> int:
    """Return `String.hashCode`, unsigned."""
    units = sort_key(text)
    code = 0
    for high, low in zip(units[::2], units[1::2], strict=True):
        code = (31 * code + (high << 8 | low)) & _WORD
    return code


def topic_id_hash(topic_id: TopicId) -> int:
    """Return `Uuid.hashCode`, unsigned."""
    mixed = topic_id[0] ^ topic_id[1]
    return (mixed >> 32 ^ mixed) & _WORD


def members_in_order(group: Group) -> list[Member]:
    """Return the members as Kafka's maps by member id walk them."""
    return in_hash_order(group.members, lambda member: string_hash(member.id))


def subscription_in_order(topics: Iterable[str]) -> list[str]:
    """Return a member's topics as the coordinator's set of their names is walked.

    A member record holds them sorted, and the broker's assignors see topic ids in this order
    (`TopicIds`), so it decides between ids that share a bucket.
    """
    names = sorted(topics, key=sort_key)
    return in_hash_order(names, string_hash, capacity=copied_set_capacity(len(names)))


def topics_in_order(ids: Mapping[str, TopicId], topics: Iterable[str]) -> list[str]:
    """Return topics as a map by their ids is walked."""
    return in_hash_order(topics, lambda topic: topic_id_hash(ids[topic]))


def copied_topics_in_order(ids: Mapping[str, TopicId], topics: Iterable[str]) -> list[str]:
    """Return topics as a set copied from a set of their ids is walked."""
    copied = list(topics)
    capacity = copied_set_capacity(len(copied))
    return in_hash_order(copied, lambda topic: topic_id_hash(ids[topic]), capacity=capacity)


def partitions_in_order(partitions: Iterable[int]) -> list[int]:
    """Return partitions as a set copied from a record is walked: by number, modulo its size."""
    copied = list(partitions)
    return in_hash_order(copied, int, capacity=copied_set_capacity(len(copied)))


# What members say they owned, with contradictions between them settled
# (`AbstractStickyAssignor`).
#
# A member that was away keeps claiming what it owned in an older generation; two members may
# claim the same partition.


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


# What is said about an assignment: sizes, what stayed, what nobody reads.


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
