"""Which type a group has and since when: its present life (``GroupMetadataManager``).

A classic value replaces whatever is stored under the id, and a classic tombstone removes it, of any
type. The group tombstone of another type ends a life of that type. Any value of a type makes the
group where there is none. A tombstone that meets no group does nothing. Where records of two types
follow each other without the tombstone between them, which no broker writes and a lost segment can
show, the later type is the group's.

Some groups are there for their offsets alone, and give way to the first type that comes: commits
make one where there is no group, and a classic value without members and protocol type is one
(``ClassicGroup.isSimpleGroup``). Since 4.0 even a tombstone of a consumer or streams group takes it
over, and that of the group itself ends it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from analytics.replay.groups.group_records import (
    CLASSIC_FAMILY,
    COMMIT,
    CONSUMER_FAMILY,
    FAMILIES,
    FAMILY_OF,
    GROUP,
    NONE,
    ROLE_OF,
    STREAMS_FAMILY,
    CodedLog,
    first_row,
    last_row,
    numbers,
)

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from analytics.replay.groups.group_records import Flags, Numbers

# The records in force: what the present lives of groups are made of.


@dataclass(frozen=True)
class Keys:
    """What is in force, by key (group, kind and member).

    Attributes:
        group: The key's group.
        member: The key's member.
        kind: Its place in `KINDS`, or `COMMIT`.
        row: Any of its rows.
        value: The row of its last value in the group's present life, else `NONE`.
        first: The row of its first value there since its last tombstone, else `NONE`.
        tombstone: The row of its last tombstone there that met the group, else `NONE`.
    """

    group: Numbers
    member: Numbers
    kind: Numbers
    row: Numbers
    value: Numbers
    first: Numbers
    tombstone: Numbers

    def are_of(self, role: str) -> Flags:
        """Say which keys of living groups, of their present type, are in a role."""
        is_there = np.maximum(self.value, self.tombstone) != NONE
        found: Flags = is_there & (ROLE_OF[self.kind] == role)
        return found


@dataclass(frozen=True)
class InForce:
    """Records in force and the lives they belong to; `named` has the names of groups by number."""

    log: CodedLog
    lives: Lives
    keys: Keys
    named: pa.Table

    def of_groups(self, role: str) -> tuple[Numbers, Numbers]:
        """Return by group the rows of its last value and last tombstone in a role."""
        keys, which = self.keys, self.keys.are_of(role)
        value, tombstone = np.full((2, self.log.groups), NONE, np.int64)
        value[keys.group[which]] = keys.value[which]
        tombstone[keys.group[which]] = keys.tombstone[which]
        return value, tombstone

    def values_in(self, column: str, rows: Numbers) -> pa.Array:
        """Return the values of rows in a column; null where there is no row."""
        return whole(self.log.rows.column(column)).take(pa.array(rows, mask=rows == NONE))


def in_force(log: CodedLog, living: Lives) -> InForce:
    """Find the records in force."""
    row = last_row(log.key, np.ones(len(log.key), bool), log.keys)
    group, member, kind = log.group[row], log.member[row], log.kind[row]
    value = last_row(log.key, log.is_value, log.keys)
    tombstone = last_row(log.key, log.is_tombstone, log.keys)
    first = first_since_tombstone(log, log.is_value & _is_since(log, living))
    is_of_it = living.is_there[group] & (FAMILY_OF[kind] == living.family[group])
    since = living.since[group]
    value[~is_of_it | (value <= since)] = NONE
    tombstone[~is_of_it | (tombstone <= np.maximum(since, living.made_by[group]))] = NONE
    first[value == NONE] = NONE
    of_group = last_row(log.group, np.ones(len(log.group), bool), log.groups)
    named = log.rows.select(["coordinator_partition", "group_id"]).take(of_group)
    return InForce(log, living, Keys(group, member, kind, row, value, first, tombstone), named)


def first_since_tombstone(log: CodedLog, where: Flags) -> Numbers:
    """Return by key its first row since its last tombstone, among those where something holds."""
    ended = last_row(log.key, log.is_tombstone, log.keys)
    return first_row(log.key, where & (np.arange(len(log.key)) > ended[log.key]), log.keys)


def _is_since(log: CodedLog, living: Lives) -> Flags:
    """Of each row, whether it lies behind the beginning of its group's present life."""
    found: Flags = np.arange(len(log.key)) > living.since[log.group]
    return found


def whole(column: pa.ChunkedArray | pa.Array) -> pa.Array:
    """Return a column in one piece."""
    if isinstance(column, pa.ChunkedArray) and column.num_chunks != 1:
        column = column.combine_chunks()
    if isinstance(column, pa.ChunkedArray):
        return column.chunk(0) if column.num_chunks else pa.nulls(0, column.type)
    return column


def optional(number: Numbers, missing: Flags) -> pa.Array:
    """Return numbers of 32 bits, null where they are missing."""
    return pa.array(number.astype(np.int32), mask=missing)


_TYPES = len(FAMILIES)


@dataclass(frozen=True)
class DecidingRows:
    """The rows that decide about lives, by group and type; `NONE` where there is no such row.

    Attributes:
        creating: The last value that makes a group.
        removed: The last tombstone of a group.
        since: What ended the lives of a type before the present one; later rows belong to it.
        first: The first value behind that which makes a group.
        newer: By group, the last tombstone of a consumer or streams group.
    """

    creating: Numbers
    removed: Numbers
    since: Numbers
    first: Numbers
    newer: Numbers


@dataclass(frozen=True)
class Lives:
    """The present lives, by group.

    Attributes:
        is_there: Whether there is a group that has records.
        family: The number of its type.
        since: The row behind which its records are; `NONE`: all are.
        made_by: The row that made it; tombstones before it met no group.
        is_gone: Whether the group was removed and not made again, by a commit neither.
    """

    is_there: Flags
    family: Numbers
    since: Numbers
    made_by: Numbers
    is_gone: Flags


def deciding_rows(log: CodedLog) -> DecidingRows:
    """Find the rows that decide about lives."""
    place, size = log.group * _TYPES + log.family, log.groups * _TYPES

    def by_type(rows: Numbers) -> Numbers:
        return rows.reshape(log.groups, _TYPES)

    makes = log.makes_group
    made = by_type(last_row(place, makes, size))
    removed = by_type(last_row(place, log.is_of(GROUP) & log.is_tombstone, size))
    since = _ends_of_earlier_lives(made, removed)
    here = np.arange(len(log.group)) > since[log.group, log.family]
    is_newer = log.is_tombstone & np.isin(log.family, (CONSUMER_FAMILY, STREAMS_FAMILY))
    return DecidingRows(
        made,
        removed,
        since,
        by_type(first_row(place, makes & here, size)),
        last_row(log.group, is_newer, log.groups),
    )


def lives(log: CodedLog, deciding: DecidingRows, *, groups_end_by_tombstones: bool) -> Lives:
    """Say which groups there are.

    Args:
        log: The records.
        deciding: Of these records.
        groups_end_by_tombstones: Simple groups are groups as others are: from 4.0 on.
    """
    each = np.arange(log.groups)
    family = deciding.creating.argmax(axis=1)
    since, made_by = deciding.since[each, family], deciding.first[each, family]
    is_there = deciding.creating[each, family] > since
    if not groups_end_by_tombstones:
        return Lives(is_there, family, since, made_by, np.zeros(log.groups, bool))
    committed = first_row(log.group, log.kind == COMMIT, log.groups)
    simple = _simple_values(log, deciding)
    is_simple = is_there & (family == CLASSIC_FAMILY) & (simple != NONE)
    ended = np.maximum(deciding.removed[:, CONSUMER_FAMILY], deciding.removed[:, STREAMS_FAMILY])
    is_there &= ~(is_simple & (ended > simple))
    stands_on = np.where(is_there, np.where(is_simple, simple, NONE), committed)
    is_over = (stands_on != NONE) & (deciding.newer > stands_on)
    made_by = _earliest(
        made_by,
        np.where(committed > since, committed, NONE),
        np.where(simple == since, simple, NONE),
    )
    was_removed = (deciding.removed != NONE).any(axis=1)
    taker: Numbers = log.family[deciding.newer]
    return Lives(
        is_there | is_over,
        np.where(is_over, taker, family),
        np.where(is_over, stands_on, since),
        np.where(is_over, stands_on, made_by),
        was_removed & ~(is_there | is_over) & (committed == NONE),
    )


def _ends_of_earlier_lives(creating: Numbers, removed: Numbers) -> Numbers:
    since = np.maximum(removed, removed[:, [CLASSIC_FAMILY]])
    for family in range(_TYPES):
        others = np.delete(creating, family, axis=1).max(axis=1)
        since[:, family] = np.maximum(since[:, family], others)
    # A classic value is a whole life: it begins right there, if nothing ended it since.
    since[:, CLASSIC_FAMILY] = np.maximum(
        removed[:, CLASSIC_FAMILY], creating[:, CLASSIC_FAMILY] - 1
    )
    return since


def _simple_values(log: CodedLog, deciding: DecidingRows) -> Numbers:
    """Return by group its last classic value, where nobody would miss that group, else `NONE`."""
    last = deciding.creating[:, CLASSIC_FAMILY]
    members = numbers(pc.list_value_length(log.rows.column("members")), null=0)
    no_protocol: NDArray[np.bool_] = pc.is_null(log.rows.column("protocol_type")).to_numpy()
    is_simple: Flags = (no_protocol & (members == 0))[last]
    return np.where((last != NONE) & is_simple, last, NONE)


def _earliest(first: Numbers, *others: Numbers) -> Numbers:
    for other in others:
        first = np.where(other == NONE, first, np.minimum(first, other))
    return first
