"""The members of groups, as rows of `members`, and what they have or shall have, of `assignments`.

A member of a consumer, share or streams group exists from its first metadata or current
assignment until the tombstone of its metadata. A tombstone of its current assignment alone leaves
it there with epoch -1 and nothing assigned. A member without a current assignment is at epoch 0,
its epoch before is -1, and it is stable; but one of a streams group is in a state that is not known
then, so that its group is not stable (``StreamsGroupMember.isReconciledTo``). All members of a
classic group are in its last value.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import polars as pl
import pyarrow as pa
import pyarrow.compute as pc

from analytics.replay.groups.group_records import (
    ASSIGNMENTS,
    CLASSIC_FAMILY,
    CURRENT,
    FAMILIES,
    GROUP,
    ITEMS,
    MEMBER,
    MEMBER_DETAILS,
    MEMBERS,
    NONE,
    OF_MEMBERS,
    PENDING,
    STREAMS_FAMILY,
    TARGET,
    dense,
    numbers,
)
from analytics.replay.groups.lives import InForce, optional, whole

if TYPE_CHECKING:
    from collections.abc import Mapping

    from numpy.typing import NDArray

    from analytics.replay.groups.fold import Groups
    from analytics.replay.groups.group_records import Flags, Numbers

JOINING_EPOCH = 0
LEFT_EPOCH = -1
NO_EPOCH_BEFORE = -1
STABLE = "STABLE"
UNKNOWN_STATE = "UNKNOWN"
_PARTITION_STATES = {0: STABLE, 1: "UNREVOKED_PARTITIONS", 2: "UNRELEASED_PARTITIONS"}
_TASK_STATES = {1: STABLE, 2: "UNREVOKED_TASKS", 3: "UNRELEASED_TASKS"}
_NO_STATE = -(1 << 40)
"""Stored nowhere: states are 8 bits wide."""
_WHOSE = ("group", "member_id", "kind", "role", "subtopology_id", "topic_id", "topic", "partition")
_ASSIGNMENT_KINDS = pa.array([CURRENT, PENDING, TARGET])


@dataclass(frozen=True)
class Members:
    """The members of all groups.

    Attributes:
        rows: As `members`; those of classic groups come first.
        group: Of each row, its group.
        epoch: Of each row, its epoch.
        state: Of each row, its state in Kafka's words, None of members of classic groups.
        current: The rows of `RECORDS` that say what members have, and the groups of these.
        target: Those that say what members shall have; such a member need not exist.
    """

    rows: pa.StructArray
    group: Numbers
    epoch: Numbers
    state: np.ndarray
    current: tuple[Numbers, Numbers]
    target: tuple[Numbers, Numbers]


@dataclass(frozen=True)
class Assignments:
    """Partitions and tasks of members: their rows, and the group of each."""

    rows: pa.StructArray
    group: Numbers


@dataclass(frozen=True)
class _Records:
    """Members of consumer, share and streams groups by number, and the rows that make them."""

    group: Numbers
    row: Numbers
    metadata: Numbers
    current: Numbers
    target: Numbers
    exists: Flags
    has_left: Flags


def member_rows(in_force: InForce) -> Members:
    """Return the members of all groups."""
    records = _records(in_force)
    classic, classic_group = _of_classic_groups(in_force)
    there = np.flatnonzero(records.exists)
    epoch, told, state = _of_others(in_force, records, there)
    has = records.exists & ~records.has_left & (records.current != NONE)
    shall_have = records.target != NONE
    generation = pc.struct_field(classic, "member_epoch")
    return Members(
        pa.concat_arrays([classic, told]),
        np.concatenate([classic_group, records.group[there]]),
        np.concatenate([numbers(generation), epoch]),
        np.concatenate([np.full(len(classic), None), state]),
        (records.current[has], records.group[has]),
        (records.target[shall_have], records.group[shall_have]),
    )


def assignment_rows(in_force: InForce, members: Members, groups: Groups) -> Assignments:
    """Return what members were given, a row for each partition or task."""
    own, _ = in_force.of_groups(GROUP)
    classic = np.flatnonzero((in_force.lives.family == CLASSIC_FAMILY) & (own != NONE))
    (current, current_group), (target, target_group) = members.current, members.target
    rows = np.concatenate([own[classic], current, target])
    group = np.concatenate([classic, current_group, target_group])
    # A target belongs to the group's assignment epoch, all else to the epoch its record names.
    epoch = pa.concat_arrays(
        [
            in_force.values_in("epoch", np.concatenate([own[classic], current])),
            pa.array(groups.assignment_epoch[target_group].astype(np.int32)),
        ]
    )
    lists = in_force.values_in("items", rows)
    items, holder = pc.list_flatten(lists), numbers(pc.list_parent_indices(lists))
    is_given = pc.is_in(pc.struct_field(items, "kind"), _ASSIGNMENT_KINDS)
    items, holder = items.filter(is_given), holder[is_given.to_numpy(zero_copy_only=False)]
    partitions = pc.struct_field(items, "partitions")
    item = numbers(pc.list_parent_indices(partitions))
    holder, each = holder[item], items.take(pa.array(item))
    told = {
        name: pc.struct_field(each, name)
        for name in (field.name for field in ITEMS)
        if name != "partitions"
    }
    told |= {
        "group_type": _type_names(in_force.lives.family[group[holder]]),
        "epoch": epoch.take(pa.array(holder)),
        "member_id": pc.coalesce(told["member_id"], in_force.values_in("member_id", rows[holder])),
        "partition": pc.list_flatten(partitions),
    }
    told["group"] = pa.array(group[holder])
    is_first = _is_first(told)
    return Assignments(
        struct(ASSIGNMENTS, told).filter(pa.array(is_first)), group[holder][is_first]
    )


def _records(in_force: InForce) -> _Records:
    keys = in_force.keys
    of_it = np.flatnonzero(OF_MEMBERS[keys.kind] & in_force.lives.is_there[keys.group])
    member, count = dense(keys.group[of_it], keys.member[of_it])
    group, row = np.full((2, count), NONE, np.int64)
    group[member], row[member] = keys.group[of_it], keys.row[of_it]

    def rows(role: str, of_keys: Numbers) -> Numbers:
        found = np.full(count, NONE, np.int64)
        which = keys.are_of(role)[of_it]
        found[member[which]] = of_keys[of_it][which]
        return found

    def last(role: str) -> tuple[Numbers, Numbers]:
        return rows(role, keys.value), rows(role, keys.tombstone)

    metadata, born = last(MEMBER)
    current, dropped = last(CURRENT)
    target, target_dropped = last(TARGET)
    has_current = current > born
    # A tombstone that meets the member leaves it without an epoch until it is given one.
    came = rows(MEMBER, keys.first)
    left_after = np.maximum(np.maximum(born, current), np.where(has_current, NONE, came))
    return _Records(
        group,
        row,
        metadata=np.where(metadata > born, metadata, NONE),
        current=np.where(has_current, current, NONE),
        target=np.where(target > target_dropped, target, NONE),
        exists=(metadata > born) | has_current,
        has_left=dropped > left_after,
    )


def _of_others(
    in_force: InForce, records: _Records, there: Numbers
) -> tuple[Numbers, pa.StructArray, np.ndarray]:
    """Return epochs, rows and states of members of consumer, share and streams groups."""
    current, has_left = records.current[there], records.has_left[there]
    family = in_force.lives.family[records.group[there]]
    stored = numbers(in_force.values_in("epoch", current), JOINING_EPOCH)
    epoch = np.where(has_left, LEFT_EPOCH, stored)
    previous = in_force.values_in("previous_epoch", current)
    # Only a member of a streams group begins without an epoch before.
    begins = (current == NONE) & (family != STREAMS_FAMILY)
    before = np.where(begins, NO_EPOCH_BEFORE, np.where(has_left, LEFT_EPOCH, numbers(previous)))
    state = _states(family, numbers(in_force.values_in("member_state", current), _NO_STATE))
    details = _details(in_force, records.metadata[there])
    told = {field.name: pc.struct_field(details, field.name) for field in MEMBER_DETAILS}
    told |= {
        "group_type": _type_names(family),
        "member_id": in_force.values_in("member_id", records.row[there]),
        "is_classic": pc.fill_null(told["is_classic"], fill_value=False),
        "member_epoch": optional(epoch, np.zeros(len(there), bool)),
        "previous_member_epoch": optional(
            before, ~has_left & ~begins & pc.is_null(previous).to_numpy(zero_copy_only=False)
        ),
        "state": _words(state),
    }
    return epoch, struct(MEMBERS, told), state


def _details(in_force: InForce, rows: Numbers) -> pa.StructArray:
    """Return what records of one member each say of it; null where there is no record."""
    lists = in_force.values_in("members", rows)
    place = np.full(len(rows), NONE, np.int64)
    parents = numbers(pc.list_parent_indices(lists))
    place[parents] = np.arange(len(parents))
    return pc.list_flatten(lists).take(pa.array(place, mask=place == NONE))


def _of_classic_groups(in_force: InForce) -> tuple[pa.StructArray, Numbers]:
    value, _ = in_force.of_groups(GROUP)
    groups = np.flatnonzero((in_force.lives.family == CLASSIC_FAMILY) & (value != NONE))
    rows = value[groups]
    lists = in_force.values_in("members", rows)
    details, parents = pc.list_flatten(lists), numbers(pc.list_parent_indices(lists))
    told = {field.name: pc.struct_field(details, field.name) for field in MEMBER_DETAILS}
    told |= {
        "group_type": _type_names(np.full(len(parents), CLASSIC_FAMILY)),
        "member_epoch": in_force.values_in("epoch", rows[parents]),
    }
    return struct(MEMBERS, told), groups[parents]


def _states(family: Numbers, stored: Numbers) -> np.ndarray:
    """Return states in Kafka's words; a member without a record of one is stable or unknown."""
    words = np.full(len(stored), UNKNOWN_STATE, object)
    for states, are in (
        (_PARTITION_STATES, family != STREAMS_FAMILY),
        (_TASK_STATES, family == STREAMS_FAMILY),
    ):
        for code, word in states.items():
            words[are & (stored == code)] = word
    words[stored == _NO_STATE] = STABLE
    words[(stored == _NO_STATE) & (family == STREAMS_FAMILY)] = UNKNOWN_STATE
    return words


def struct(type_: pa.StructType, fields: dict[str, pa.Array]) -> pa.StructArray:
    """Return structs of columns; those that are not told are null."""
    length = len(next(iter(fields.values())))
    columns = [
        whole(fields[field.name]).cast(field.type)
        if field.name in fields
        else pa.nulls(length, field.type)
        for field in type_
    ]
    return pa.StructArray.from_arrays(columns, fields=list(type_))


def _type_names(family: Numbers) -> pa.Array:
    """Return the types of groups by their names."""
    return pa.array(FAMILIES, pa.string()).take(pa.array(family))


def _words(words: np.ndarray) -> pa.Array:
    return pa.array(words, pa.string())


def _is_first(columns: Mapping[str, pa.Array]) -> NDArray[np.bool_]:
    """Return which rows say what no row before them says.

    Brokers keep partitions and tasks as sets, whatever a list in a record repeats.
    """
    whose = pl.from_arrow(pa.table({name: columns[name] for name in _WHOSE}))
    assert isinstance(whose, pl.DataFrame)
    found: NDArray[np.bool_] = (
        whose.select(pl.struct(pl.all()).is_first_distinct()).to_series().to_numpy()
    )
    return found
