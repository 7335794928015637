"""The records in force: what the present lives of groups are made of."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from analytics.replay.groups.coded_log import NONE, CodedLog, first_row, last_row
from analytics.replay.groups.columns import FAMILY_OF, ROLE_OF

if TYPE_CHECKING:
    from analytics.replay.groups.coded_log import Flags, Numbers
    from analytics.replay.groups.lives import Lives


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
