"""A group as its balance is judged: who is in it, who has what, and how much there is."""

from __future__ import annotations

import base64
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import polars as pl

from analytics.assignors.group import Group, Member, TopicId, TopicPartition, by_topic
from analytics.replay.log.topic_homes import internal_partition
from schemas.evaluation_rules import RebalanceRules

# How groups lie on the partitions of `__consumer_offsets` (``Utils.abs(hashCode)`` mod N).


@dataclass(frozen=True)
class Placement:
    """Groups over the partitions of the topic.

    Attributes:
        partitions: How many partitions the topic has; None: not known.
        groups: How many groups there are.
        used: Partitions that hold a group.
        most: Groups in the fullest partition, and
        fullest: which that is; None without groups.
        overloaded: Partitions with too many groups, ascending.
        misplaced: Groups that lie elsewhere than their hash says, with where they are and where
            they should be. No broker finds these.
    """

    partitions: int | None
    groups: int
    used: int
    most: int
    fullest: int | None
    overloaded: tuple[int, ...]
    misplaced: tuple[tuple[str, int, int], ...]


def placement(
    groups: pl.DataFrame,
    partitions: int | None,
    rules: RebalanceRules,
    present: int | None = None,
) -> Placement:
    """Verify where groups are, and find partitions that hold too many of them.

    Args:
        groups: `group_id` with the `coordinator_partition` its records are in.
        partitions: How many partitions the topic has; None where that is not known.
        rules: From when on a partition is overloaded.
        present: How many of the partitions the dump has; None: all. The others are not empty.
    """
    place = "coordinator_partition"
    loads = groups.group_by(place).len().sort(["len", place], descending=[True, False])
    fullest, most = loads.row(0) if loads.height else (None, 0)
    mean = groups.height / (present or partitions) if partitions else 0.0
    limit = max(mean * rules.skew.times, mean + rules.skew.groups_above)
    overloaded = loads.filter(pl.col("len") > limit)[place].sort().to_list() if partitions else []
    return Placement(
        partitions=partitions,
        groups=groups.height,
        used=loads.height,
        most=most,
        fullest=fullest,
        overloaded=tuple(overloaded),
        misplaced=tuple(_misplaced(groups, partitions) if partitions else ()),
    )


def _misplaced(groups: pl.DataFrame, partitions: int) -> list[tuple[str, int, int]]:
    home = internal_partition(pl.col("group_id"), partitions)
    placed = groups.select("group_id", "coordinator_partition", home.alias("home"))
    elsewhere = pl.col("home") != pl.col("coordinator_partition")
    return list(placed.filter(elsewhere).sort(placed.columns).iter_rows())


# Partitions in words: `orders 0-3,7`.

MOST_NAMED = 3
"""Topics or partitions named in a sentence; the rest is counted."""


def named(partitions: Iterable[TopicPartition]) -> str:
    """Return partitions by topic, runs as `first-last`, the first topics only."""
    topics = by_topic(partitions)
    return listed([f"{topic} {runs(numbers)}" for topic, numbers in topics.items()])


def runs(numbers: Sequence[int]) -> str:
    """Return ascending numbers as runs: `0-3,7`."""
    found: list[list[int]] = []
    for number in numbers:
        if found and number == found[-1][1] + 1:
            found[-1][1] = number
        else:
            found.append([number, number])
    return ",".join(str(first) if first == last else f"{first}-{last}" for first, last in found)


def listed(words: Sequence[str]) -> str:
    """Return the first of some words, and how many more there are."""
    more = len(words) - MOST_NAMED
    return ", ".join(words[:MOST_NAMED]) + (f" and {more} more" if more > 0 else "")


def counted(number: int, word: str) -> str:
    """Return a number with its word: `1 partition`, `3 partitions`."""
    return f"{number} {word}" if number == 1 else f"{number} {word}s"


# From a row of `cases` to the `Case` that is judged.

_CONSUMERS = "consumer"
_STABLE = "STABLE"

Row = Mapping[str, Any]


def case_of(row: Row) -> Case:
    """Return the case that a row of `cases` describes."""
    topics = {each["topic"]: each for each in row["topics"] or ()}
    wants = {m["member_id"]: frozenset(m["wants"] or ()) for m in row["members"]}
    everything = frozenset[str]().union(*wants.values())
    known = {name for name, each in topics.items() if each["partitions"] is not None}
    unknown = sorted(
        topic for topic in everything - known if topic in topics or not row["is_whole"]
    )
    sources = [topics[topic]["counted_by"] for topic in everything & known]
    return Case(
        group_id=row["group_id"],
        group_type=row["group_type"],
        epoch=row["epoch"],
        group=_group(row, topics, wants, known),
        protocol=row["protocol"],
        unknown=tuple(unknown),
        counted_by=COUNT_SOURCES[-1]
        if unknown
        else max(sources, key=COUNT_SOURCES.index, default=COUNT_SOURCES[0]),
        unreadable=_unreadable(row),
        unsettled=_unsettled(row),
        owned_before=_owned_before(row),
        moved=row.get("moved"),
        progress=_progress(row),
    )


def _group(
    row: Row,
    topics: Mapping[str, Row],
    subscriptions: Mapping[str, frozenset[str]],
    names: set[str],
) -> Group:
    counts = {name: int(topics[name]["partitions"]) for name in sorted(names)}
    members = []
    for each in row["members"]:
        current = {held["topic"]: tuple(held["partitions"]) for held in each["has"] or ()}
        members.append(
            Member(
                id=each["member_id"],
                # What nobody counts is told apart; the assignors pass over what does not exist.
                subscription=subscriptions[each["member_id"]] & names,
                current=current,
                instance_id=each["group_instance_id"],
                rack=each["rack_id"],
            )
        )
        if not row["is_whole"]:
            _count_what_is_held(counts, current)
    return Group(
        counts, tuple(members), _assignable(row, topics), topic_ids=_topic_ids(topics, counts)
    )


def _count_what_is_held(counts: dict[str, int], current: Mapping[str, tuple[int, ...]]) -> None:
    """Take partitions of a topic without a count for real, where nothing says that it is gone."""
    for topic, partitions in current.items():
        counts.setdefault(topic, 0)
        counts[topic] = max(counts[topic], *(number + 1 for number in partitions))


def _assignable(row: Row, topics: Mapping[str, Row]) -> dict[str, frozenset[int]] | None:
    if row["group_type"] != SHARE:
        return None
    told = {name: each["assignable"] for name, each in topics.items()}
    if all(each is None for each in told.values()):
        return None
    return {name: frozenset(each or ()) for name, each in told.items()}


def _topic_ids(topics: Mapping[str, Row], counts: Mapping[str, int]) -> dict[str, TopicId]:
    return {
        name: _topic_id(topics[name]["topic_id"])
        for name in counts
        if name in topics and topics[name]["topic_id"]
    }


def _topic_id(text: str) -> TopicId:
    raw = base64.urlsafe_b64decode(text + "==")
    return (
        int.from_bytes(raw[:8], "big", signed=True),
        int.from_bytes(raw[8:], "big", signed=True),
    )


def _unreadable(row: Row) -> str | None:
    if row["group_type"] == CLASSIC and row["protocol_type"] != _CONSUMERS:
        kind = row["protocol_type"] or "no protocol"
        return f"not a consumer group ({kind}): what its members share is not known"
    unread = [member["unread"] for member in row["members"] if member["unread"]]
    if unread:
        has = "has" if len(unread) == 1 else "have"
        return f"what {counted(len(unread), 'member')} {has} cannot be read: {unread[0]}"
    if row["unread"]:
        return str(row["unread"])
    silent = sum(member["wants"] is None for member in row["members"])
    if silent:
        return (
            f"what {counted(silent, 'member')} subscribed to cannot be read or is not in the dump"
        )
    return None


def _unsettled(row: Row) -> str | None:
    wanted = row["assignment_epoch"]
    if row["group_type"] == CLASSIC or wanted is None:
        return None
    if row["epoch"] > wanted:
        return (
            f"group epoch {row['epoch']} is ahead of assignment epoch {wanted}: "
            "nothing has been assigned since"
        )
    late = sum(
        member["member_epoch"] != wanted or (member["state"] or _STABLE) != _STABLE
        for member in row["members"]
    )
    if late:
        return (
            f"{counted(late, 'member')} of {len(row['members'])} have yet to take up epoch {wanted}"
        )
    return None


def _owned_before(row: Row) -> frozenset[tuple[str, int]] | None:
    before = row.get("owned_before")
    return None if before is None else frozenset((e["topic"], e["partition"]) for e in before)


def _progress(row: Row) -> dict[tuple[str, int], int] | None:
    advances = row.get("progress")
    if advances is None:
        return None
    return {(each["topic"], each["partition"]): each["advance"] for each in advances}


CLASSIC, CONSUMER, SHARE, STREAMS = "classic", "consumer", "share", "streams"
_BY_TOPIC_ID = frozenset({CONSUMER, SHARE})

COUNT_SOURCES = (
    "metadata_log",
    "snapshot",
    "side_file",
    "partition_metadata",
    "seen",
    "unknown",
)
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
