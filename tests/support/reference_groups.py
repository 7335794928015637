"""Groups of each type, replayed one record after the other, slowly and plainly.

Written from what is known of Kafka's ``GroupMetadataManager`` (4.x) alone, to be held against the
replay. It knows nothing of columns.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from tests.support.reference_offsets import GroupRecord

Value = Mapping[str, Any]
GONE = -1
MEMBER_STATES = {
    "consumer": {0: "STABLE", 1: "UNREVOKED_PARTITIONS", 2: "UNRELEASED_PARTITIONS"},
    "share": {0: "STABLE", 1: "UNREVOKED_PARTITIONS", 2: "UNRELEASED_PARTITIONS"},
    "streams": {1: "STABLE", 2: "UNREVOKED_TASKS", 3: "UNRELEASED_TASKS"},
}


class RefusedByBrokerError(Exception):
    """A broker that meets this record does not load the partition."""


@dataclass
class SimpleGroup:
    """A group that commits made, of which no record of its own tells."""


@dataclass
class ClassicGroup:
    """A classic group is what its last record says."""

    record: GroupRecord

    @property
    def value(self) -> Value:
        """The record's value."""
        assert self.record.value is not None
        return self.record.value

    @property
    def is_simple(self) -> bool:
        """Whether nobody would miss it: no members, and no protocol they could speak."""
        return not self.value["members"] and not self.value["protocol_type"]


@dataclass
class Member:
    """A member of a group of the newer types; ``metadata`` is None until a record brings it."""

    metadata: Value | None = None
    epoch: int = 0
    previous_epoch: int | None = None
    state: str = "STABLE"
    current: Value | None = None


@dataclass
class ModernGroup:
    """A consumer, share or streams group."""

    family: str
    assignment_epoch: int
    epoch: int
    record: GroupRecord | None = None
    members: dict[str, Member] = field(default_factory=dict)
    targets: dict[str, Value] = field(default_factory=dict)
    validated_topology: int = 0
    topology: int | None = None
    owners: dict[Any, Any] = field(default_factory=dict)
    """Of partitions and tasks, as loading keeps them (`tests.support.reference_owners`)."""

    def member(self, name: str) -> Member:
        """Get a member, or have it join: stable, in epoch 0 and -1 before that.

        One of a streams group has no state that is known, and no epoch before.
        """
        is_task = self.family == "streams"
        joined = Member(state="UNKNOWN") if is_task else Member(previous_epoch=-1)
        return self.members.setdefault(name, joined)


Group = SimpleGroup | ClassicGroup | ModernGroup


class ReferenceGroups:
    """The groups of one partition by name."""

    def __init__(self, *, initial_epoch: int) -> None:
        """Begin with none; the epoch is that of a group and an assignment no record tells."""
        self.groups: dict[str, Group] = {}
        self.initial_epoch = initial_epoch

    def committed(self, name: str) -> None:
        """Have a commit make a simple group, where there is no group yet."""
        self.groups.setdefault(name, SimpleGroup())

    def replay_classic(self, record: GroupRecord) -> None:
        """Replace the group of that name, or remove it, of whatever type it is."""
        name = record.key["group"]
        self.groups.pop(name, None)
        if record.value is not None:
            self.groups[name] = ClassicGroup(record)

    def replay(self, family: str, kind: str, record: GroupRecord) -> None:
        """Apply a record of a consumer, share or streams group.

        Args:
            family: ``consumer``, ``share`` or ``streams``.
            kind: What follows ``<family>_group_`` in the name of the record.
            record: With its value, or its tombstone.

        Raises:
            RefusedByBrokerError: A group of another type has that name.
        """
        group = self._of_family(family, record)
        if group is None:
            return
        if kind in {"metadata", "target_assignment_metadata", "topology"}:
            self._replay_group(group, kind, record)
        elif kind.startswith(("member", "target_assignment_member", "current")):
            _replay_member(group, kind, record)

    def _of_family(self, family: str, record: GroupRecord) -> ModernGroup | None:
        """Get or create the group; a tombstone creates none, but takes over a simple one."""
        name = record.key["group_id"]
        there = self.groups.get(name)
        if there is None and record.value is None:
            return None
        if isinstance(there, ModernGroup) and there.family == family:
            return there
        is_simple = isinstance(there, SimpleGroup) or (
            isinstance(there, ClassicGroup) and there.is_simple
        )
        if there is not None and (not is_simple or family == "share"):
            raise RefusedByBrokerError(f"{name} is no {family} group")
        made = ModernGroup(family, self.initial_epoch, self.initial_epoch)
        self.groups[name] = made
        return made

    def _replay_group(self, group: ModernGroup, kind: str, record: GroupRecord) -> None:
        value = record.value
        if kind == "topology":
            group.topology = None if value is None else value["epoch"]
        elif kind == "target_assignment_metadata":
            group.assignment_epoch = GONE if value is None else value["assignment_epoch"]
        elif value is None:
            del self.groups[record.key["group_id"]]
        else:
            group.epoch, group.record = value["epoch"], record
            group.validated_topology = value.get("validated_topology_epoch", -1)


def _replay_member(group: ModernGroup, kind: str, record: GroupRecord) -> None:
    name, value = record.key["member_id"], record.value
    if kind == "target_assignment_member":
        group.targets.pop(name, None)
        if value is not None:
            group.targets[name] = value
    elif kind == "member_metadata":
        if value is None:
            group.members.pop(name, None)
        else:
            group.member(name).metadata = value
    elif value is not None:
        member = group.member(name)
        member.epoch, member.previous_epoch = value["member_epoch"], value["previous_member_epoch"]
        member.state = MEMBER_STATES[group.family].get(value["state"], "UNKNOWN")
        member.current = value
    elif name in group.members:
        member = group.members[name]
        member.epoch = member.previous_epoch = GONE
        member.current = None


def state_of(group: Group, *, streams_validate: bool) -> str:
    """Return the state in Kafka's words.

    Args:
        group: Of any type.
        streams_validate: Whether records tell that a topology is ready (4.2); before, only memory.
    """
    if isinstance(group, SimpleGroup):
        return "Empty"
    if isinstance(group, ClassicGroup):
        return "Stable" if group.value["members"] else "Empty"
    if not group.members:
        return "Empty"
    return "Stable" if group.family == "share" else _balance_of(group, streams_validate)


def _balance_of(group: ModernGroup, streams_validate: bool) -> str:
    if group.family == "streams":
        ready = streams_validate and group.topology is not None
        if not ready or group.topology != group.validated_topology:
            return "NotReady"
    if group.epoch > group.assignment_epoch:
        return "Assigning"
    reached = [
        each.state == "STABLE" and each.epoch == group.assignment_epoch
        for each in group.members.values()
    ]
    return "Stable" if all(reached) else "Reconciling"
