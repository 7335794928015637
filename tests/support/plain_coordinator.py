"""A coordinator of groups that takes one printed record after the other: slow, and plain.

Groups and offsets are those of the references; what their members subscribe to and what they have
is read off the records here.
"""

from __future__ import annotations

import base64
from collections.abc import Mapping
from typing import Any

from tests.support.consumer_protocol import parse_assignment, parse_subscription
from tests.support.reference_groups import (
    ClassicGroup,
    Group,
    ModernGroup,
    ReferenceGroups,
    SimpleGroup,
)
from tests.support.reference_offsets import GroupRecord, ReferenceOffsets

FAMILIES = ("consumer", "share", "streams")
CONSUMER_PROTOCOL = "consumer"
Item = tuple[str, int]
"""Topic (of a group of the newer types its id, of a streams group the subtopology), partition."""


class PlainCoordinator:
    """One partition of `__consumer_offsets`."""

    def __init__(self, release: str) -> None:
        """Begin with nothing, by the rules of a release such as ``4.3``."""
        version = tuple(map(int, release.split(".")[:2]))
        self.offsets = ReferenceOffsets(scala=version < (4, 0))
        self._groups = ReferenceGroups(initial_epoch=int(version >= (4, 3)))
        self._topologies: dict[str, Mapping[str, Any]] = {}
        self._expressions: dict[tuple[str, str], list[str]] = {}
        self.initialized: dict[str, set[Item]] = {}

    @property
    def groups(self) -> Mapping[str, Group]:
        """Groups by name, those included that only have offsets."""
        simple = {name: SimpleGroup() for name in self.offsets.groups()}
        return {**simple, **self._groups.groups}

    def replay(self, record: GroupRecord) -> None:
        """Apply the next record."""
        if record.control_type is not None:
            self.offsets.end_transaction(record)
        elif record.table == "offset_commit":
            if record.value is not None:
                self._groups.committed(record.key["group"])
            self.offsets.replay(record)
        elif record.table == "group_metadata":
            self._groups.replay_classic(record)
        else:
            self._replay_modern(record)

    def _replay_modern(self, record: GroupRecord) -> None:
        family, _, kind = record.table.partition("_group_")
        name, value = record.key["group_id"], record.value
        self._groups.replay(family, kind, record)
        if kind == "topology":
            self._topologies[name] = value or {}
        elif kind == "regular_expression":
            topics = [] if value is None else value["topics"]
            self._expressions[name, record.key["regular_expression"]] = topics
        elif kind == "state_partition_metadata":
            self.initialized[name] = {
                (each["topic_id"], partition)
                for each in (value or {}).get("initialized_topics", ())
                for partition in each["partitions"]
            }

    def wanted(self, name: str) -> dict[str, set[str] | None]:
        """Return by member the topics it subscribes to; None where its subscription is not read."""
        group = self.groups[name]
        if isinstance(group, ClassicGroup):
            return {each["member_id"]: _classic(group, each) for each in group.value["members"]}
        if not isinstance(group, ModernGroup):
            return {}
        if group.family == "streams":
            topics = self._source_topics(name)
            return dict.fromkeys(group.members, topics)
        found: dict[str, set[str] | None] = {}
        for member, known in group.members.items():
            said = known.metadata or {}
            expression = said.get("subscribed_topic_regex") or ""
            found[member] = {
                *(said.get("subscribed_topic_names") or ()),
                *self._expressions.get((name, expression), ()),
            }
        return found

    def _source_topics(self, name: str) -> set[str]:
        return {topic for topics in self.sources(name).values() for topic in topics}

    def sources(self, name: str) -> dict[str, set[str]]:
        """Return the topics that each subtopology of a streams group reads."""
        return {
            each["subtopology_id"]: {
                *each["source_topics"],
                *(source["name"] for source in each["repartition_source_topics"]),
            }
            for each in self._topologies.get(name, {}).get("subtopologies") or ()
        }

    def held(self, name: str) -> dict[str, set[Item] | None]:
        """Return by member what it has; None where its assignment is not read."""
        group = self.groups[name]
        if isinstance(group, ClassicGroup):
            return {each["member_id"]: _assigned(group, each) for each in group.value["members"]}
        if not isinstance(group, ModernGroup):
            return {}
        return {
            member: _current(known.current or {}, group.family)
            for member, known in group.members.items()
        }


def _classic(group: ClassicGroup, member: Mapping[str, Any]) -> set[str] | None:
    said = read_subscription(member)
    is_read = group.value["protocol_type"] == CONSUMER_PROTOCOL and group.value["protocol"]
    return set(said["topics"]) if is_read and said is not None else None


def read_subscription(member: Mapping[str, Any]) -> Mapping[str, Any] | None:
    """Return a member's subscription: the tool prints bytes where it cannot read all fields."""
    said = member["subscription"]
    if isinstance(said, Mapping):
        return said
    return parse_subscription(base64.b64decode(said))


def _assigned(group: ClassicGroup, member: Mapping[str, Any]) -> set[Item] | None:
    said = member["assignment"]
    if isinstance(said, str) and said:
        parsed = parse_assignment(base64.b64decode(said))
        said = parsed and {"assigned_partitions": parsed["assignedPartitions"] or ()}
        if said is None:
            return None
    if group.value["protocol_type"] != CONSUMER_PROTOCOL:
        return None
    if not said:
        return set()
    if not isinstance(said, Mapping):
        return None
    return {
        (each["topic"], partition)
        for each in said["assigned_partitions"]
        for partition in each["partitions"]
    }


def _current(said: Mapping[str, Any], family: str) -> set[Item]:
    if family == "streams":
        return {
            (each["subtopology_id"], partition)
            for each in said.get("active_tasks") or ()
            for partition in each["partitions"]
        }
    return {
        (each["topic_id"], partition)
        for each in said.get("assigned_partitions") or ()
        for partition in each["partitions"]
    }
