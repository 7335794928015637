"""A group as its balance is judged: who is in it, who has what, and how much there is."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from analytics.assignors.group import Group, TopicPartition

CLASSIC, CONSUMER, SHARE, STREAMS = "classic", "consumer", "share", "streams"
_BY_TOPIC_ID = frozenset({CONSUMER, SHARE})

COUNT_SOURCES = ("metadata_log", "side_file", "partition_metadata", "seen", "unknown")
"""How a topic's partition count is known, best first; `seen` is a lower bound."""


@dataclass(frozen=True)
class Case:
    """A group at an instant.

    Attributes:
        group_id: The group.
        group_type: classic, consumer, share or streams.
        epoch: Generation or group epoch.
        group: Members with what they want and have, and the partitions there are. Of a streams
            group "topics" are subtopologies, and partitions active tasks. What a member has of a
            topic that is gone stays in its `current` under a name that `topics` lacks.
        protocol: The assignor in use, if it is recorded.
        unknown: Wanted topics of which nobody tells how many partitions there are.
        counted_by: The weakest source of the wanted topics' counts (`COUNT_SOURCES`).
        unreadable: Why the assignment or a subscription cannot be read, in words; else None.
        unsettled: What keeps members from what the group decided, in words; else None.
        owned_before: What had an owner in the epoch before; None where that is not known.
        moved: Partitions that another member had in the epoch before; None likewise.
        progress: How far commits advanced each partition; None where no commit is known.
    """

    group_id: str
    group_type: str
    epoch: int
    group: Group
    protocol: str | None = None
    unknown: tuple[str, ...] = ()
    counted_by: str = COUNT_SOURCES[0]
    unreadable: str | None = None
    unsettled: str | None = None
    owned_before: frozenset[TopicPartition] | None = None
    moved: int | None = None
    progress: Mapping[TopicPartition, int] | None = field(default=None)

    @property
    def is_share(self) -> bool:
        """Whether several members may have a partition at once."""
        return self.group_type == SHARE

    def sizes(self) -> dict[str, int]:
        """Return how many partitions each member has, as a broker describes it.

        Consumer and share groups are given topic ids. Of one that is gone no broker knows the
        name, and it leaves its partitions out; a classic member has names, and keeps them all.
        """
        if self.group_type in _BY_TOPIC_ID:
            return {
                member.id: sum(map(len, self.group.owned(member).values()))
                for member in self.group.members
            }
        return self._assigned()

    def _assigned(self) -> dict[str, int]:
        return {
            member.id: sum(len(set(held)) for held in member.current.values())
            for member in self.group.members
        }

    def owners(self) -> dict[TopicPartition, list[str]]:
        """Return who has each partition that somebody has and that exists."""
        owners: dict[TopicPartition, list[str]] = {}
        for member in self.group.members:
            for topic, partitions in self.group.owned(member).items():
                for partition in partitions:
                    owners.setdefault((topic, partition), []).append(member.id)
        return owners

    def partitions_of_deleted(self) -> int:
        """Return how many assigned partitions exist no more."""
        alive = sum(
            len(held) for member in self.group.members for held in self.group.owned(member).values()
        )
        return sum(self._assigned().values()) - alive

    def unwanted(self) -> list[TopicPartition]:
        """Return what members of a consumer group have of topics that nobody subscribes to.

        A broker may give up a regular expression without a new epoch (KAFKA-19891, before 4.2.0),
        and then what it matched stays with its owners.
        """
        if self.group_type != CONSUMER:
            return []
        wanted = frozenset[str]().union(*(member.subscription for member in self.group.members))
        return sorted(each for each in self.owners() if each[0] not in wanted)

    def to_assign(self) -> list[TopicPartition]:
        """Return the partitions that may be given to somebody, topic by topic."""
        allowed = self.group.assignable
        return [
            (topic, partition)
            for topic in self.group.subscribed_topics()
            for partition in range(self.group.topics[topic])
            if allowed is None or partition in allowed.get(topic, ())
        ]

    def uninitialized(self) -> int:
        """Return how many partitions of wanted topics a share group may not be given yet."""
        wanted = sum(self.group.topics[topic] for topic in self.group.subscribed_topics())
        return wanted - len(self.to_assign())
