"""What a coordinator that loads a partition refuses, found before each record is applied.

Written from what is known of Kafka's ``GroupMetadataManager`` (4.0 to 4.4) alone, to be held
against the replay: a record is looked at beside the groups that the records before it made.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field, replace

from tests.support.reference_group_coordinator import READ_BY_FAMILY, ReferenceGroupCoordinator
from tests.support.reference_groups import (
    GONE,
    Group,
    ModernGroup,
    RefusedByBrokerError,
    SimpleGroup,
)
from tests.support.reference_offsets import GroupRecord
from tests.support.reference_owners import Change, change_of, fault_of

_OF_MEMBERS = ("member_metadata", "current_member_assignment")


@dataclass(frozen=True)
class Fault:
    """A record that does not fit, by its partition and offset."""

    partition: int
    offset: int
    fault: str


@dataclass
class Loading:
    """What loading a partition found; after ``ended_at`` nothing more can be said of it."""

    faults: list[Fault] = field(default_factory=list)
    ended_at: int | None = None


def loading_of(records: Iterable[GroupRecord], release: str) -> Loading:
    """Load a partition.

    It ends where a group of another type is met, or tasks that their processes do not have.

    Args:
        records: Of one partition in the order of its log.
        release: With its patch, such as ``4.3.1``.
    """
    patch, release = release, ".".join(release.split(".")[:2])
    coordinator, found = ReferenceGroupCoordinator(release), Loading()
    groups = coordinator.groups.groups
    for record in records:
        fault = _fault(groups, record, patch)
        change = _change(groups, record, release)
        if fault is not None:
            found.faults.append(Fault(record.partition, record.offset, fault))
        if fault == "other_type":
            return replace(found, ended_at=record.offset)
        try:
            coordinator.replay(record)
        except RefusedByBrokerError:
            # 4.0 has a word of its own for it, or the type is one that it skips.
            assert release == "4.0"
            return replace(found, ended_at=record.offset)
        owner = groups.get(record.key.get("group_id", ""))
        if change is None or not isinstance(owner, ModernGroup):
            continue
        misfit = fault_of(owner, change, patch)
        if misfit is not None and fault is None:
            found.faults.append(Fault(record.partition, record.offset, misfit))
        if misfit == "task_not_owned":
            return replace(found, ended_at=record.offset)
    return found


def _change(groups: dict[str, Group], record: GroupRecord, release: str) -> Change | None:
    """Return what a record of a member changes in what its group has on record."""
    family, _, kind = record.table.partition("_group_")
    if record.control_type is not None or kind not in _OF_MEMBERS:
        return None
    if family == "streams" and release == "4.0":
        return None
    there = groups.get(record.key["group_id"])
    own = there if isinstance(there, ModernGroup) and there.family == family else None
    nobody = ModernGroup(family, assignment_epoch=0, epoch=0)
    return change_of(own or nobody, kind, record.key["member_id"], record.value)


def _fault(groups: dict[str, Group], record: GroupRecord, patch: str) -> str | None:
    release = ".".join(patch.split(".")[:2])
    if record.control_type is not None or record.table == "offset_commit":
        return None
    if record.table == "group_metadata":
        there = groups.get(record.key["group"])
        replaces = record.value is not None and isinstance(there, ModernGroup)
        return "replaces_other_type" if replaces else None
    family, _, kind = record.table.partition("_group_")
    in_4_0 = (family, kind, release) == ("share", "partition_metadata", "4.0")
    if kind not in READ_BY_FAMILY[family] and not in_4_0:
        return None
    there = groups.get(record.key["group_id"])
    if there is None:
        return _without_group(family, kind, record, release)
    own = _own_group(there, family, patch)
    return "other_type" if own is None else _in_group(own, kind, record, release)


def _own_group(there: Group, family: str, release: str) -> ModernGroup | None:
    """Return the group that a record finds: itself, or a new one where a simple one gives way."""
    if isinstance(there, ModernGroup):
        return there if there.family == family else None
    is_simple = isinstance(there, SimpleGroup) or there.is_simple
    gives_way = family == "consumer" or (family == "streams" and release >= "4.2.1")
    return ModernGroup(family, assignment_epoch=0, epoch=0) if is_simple and gives_way else None


def _without_group(family: str, kind: str, record: GroupRecord, release: str) -> str | None:
    if family == "share" and release == "4.0":
        makes_one = record.value is not None and kind in {"metadata", "member_metadata"}
        return None if makes_one else "no_group"
    return None


def _in_group(group: ModernGroup, kind: str, record: GroupRecord, release: str) -> str | None:
    is_tombstone = record.value is None
    if kind in {"member_metadata", "current_member_assignment"}:
        name = record.key["member_id"]
        if name in group.members:
            leaves = kind == "member_metadata" and is_tombstone
            return _when_a_member_leaves(group, name) if leaves else None
        is_strict = group.family == "share" and release == "4.0"
        makes_one = kind == "member_metadata" and not is_tombstone
        return "no_member" if is_strict and not makes_one else None
    if kind == "target_assignment_metadata" and is_tombstone and group.targets:
        return "targets_remain"
    return _when_it_goes(group) if kind == "metadata" and is_tombstone else None


def _when_a_member_leaves(group: ModernGroup, name: str) -> str | None:
    if group.members[name].epoch != GONE:
        return "member_not_left"
    return "member_target_remains" if name in group.targets else None


def _when_it_goes(group: ModernGroup) -> str | None:
    if group.members:
        return "members_remain"
    if group.targets and group.family != "streams":
        return "targets_remain"
    return "assignment_epoch_remains" if group.assignment_epoch != GONE else None
