"""The records of groups, folded to what the coordinators keep of them; no Spark.

Everything a coordinator keeps of a group follows from the last value and the last tombstone of each
key, and from where the group's present life began: what the log cleaner leaves of a log is as good
as the log. So the fold does what the cleaner does, and more: whenever as many records have come as
were kept, it drops those that can matter no more, also those of lives that have ended. It holds the
records of the groups and members that live, and of a group that is gone those few that ended it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from analytics.replay.codes import dense
from analytics.replay.groups.coded_log import NONE, CodedLog, coded, last_row
from analytics.replay.groups.columns import COMMIT, OF_MEMBERS, STATE
from analytics.replay.groups.group_records import CURRENT, MEMBER, TARGET
from analytics.replay.groups.group_rows import group_rows
from analytics.replay.groups.in_force import first_since_tombstone, in_force
from analytics.replay.groups.lives import DecidingRows, deciding_rows, lives
from analytics.replay.groups.member_rows import assignment_rows, member_rows

if TYPE_CHECKING:
    from analytics.replay.groups.coded_log import Flags, Numbers
    from analytics.replay.log.rules import ReplayRules

AT_ONCE = 100_000
"""Records that are looked at together; less, and looking costs more than what it drops."""


def group_state(
    batches: Iterable[pa.RecordBatch], rules: ReplayRules, at_once: int = AT_ONCE
) -> Iterator[pa.RecordBatch]:
    """Fold records about groups.

    Args:
        batches: Rows of `RECORDS`, items perhaps with more columns: those of a partition of
            ``__consumer_offsets`` in the order of their offsets, any number of partitions, and of
            each group that has commits one row of kind `COMMIT` where its first commit since it was
            last removed lies.
        rules: Of the release.
        at_once: How many rows are looked at together, at least.

    Returns:
        Rows of `STATE`.
    """
    held, kept, rows = list[pa.RecordBatch](), 0, 0
    for batch in batches:
        held.append(batch)
        rows += batch.num_rows
        if rows >= max(at_once, 2 * kept):
            held = without_the_past(pa.Table.from_batches(held)).to_batches()
            rows = kept = sum(each.num_rows for each in held)
    if rows:
        yield from _state(coded(pa.Table.from_batches(held)), rules).to_batches()


def without_the_past(rows: pa.Table) -> pa.Table:
    """Return the rows of `RECORDS` that may still matter, whatever follows."""
    log = coded(rows)
    return rows.take(np.flatnonzero(_matters(log, deciding_rows(log))))


def _matters(log: CodedLog, turned: DecidingRows) -> Flags:
    number = np.arange(len(log.group))
    matters: Flags = log.kind == COMMIT
    # What ended the lives of a type before will have done so for good.
    lives_on = number > turned.since[log.group, log.family]
    lives_on &= ~_is_of_the_gone(log, turned, lives_on)
    for where in (log.is_value & lives_on, log.is_tombstone & lives_on):
        _mark(matters, last_row(log.key, where, log.keys))
    # Whether a member was there when the tombstone of its assignment came.
    _mark(matters, first_since_tombstone(log, log.is_value & lives_on & log.is_of(MEMBER)))
    for rows in (turned.creating, turned.removed, turned.first, turned.newer):
        _mark(matters, rows)
    return matters


def _is_of_the_gone(log: CodedLog, turned: DecidingRows, lives_on: Flags) -> Flags:
    """Of each row, whether it is about a member that is not there, or a target that was removed.

    A later record finds as little of them as if they had never been. What is told of a member stays
    as long as a record of it does, for what that says of the group.
    """
    is_of_member = OF_MEMBERS[log.kind] & lives_on
    member, members = dense(log.group, log.family + 1, log.member)

    def last(role: str, are: Flags) -> Numbers:
        return last_row(member, is_of_member & log.is_of(role) & are, members)

    born = last(MEMBER, log.is_tombstone)
    is_there = (last(MEMBER, log.is_value) > born) | (last(CURRENT, log.is_value) > born)
    has_target = last(TARGET, log.is_value) > last(TARGET, log.is_tombstone)
    for rows in (turned.creating, turned.first):
        stays = member[rows[rows != NONE]]
        is_there[stays] = has_target[stays] = True
    lasts = np.where(log.is_of(TARGET), has_target[member], is_there[member])
    gone: Flags = is_of_member & ~lasts
    return gone


def _mark(matters: Flags, rows: Numbers) -> None:
    matters[rows[rows != NONE]] = True


def _state(log: CodedLog, rules: ReplayRules) -> pa.Table:
    living = lives(log, deciding_rows(log), groups_end_by_tombstones=rules.groups_end_by_tombstones)
    kept = in_force(log, living)
    members = member_rows(kept)
    groups = group_rows(kept, members, rules)
    given = assignment_rows(kept, members, groups)
    told = {"a_group": groups.rows, "a_member": members.rows, "an_assignment": given.rows}
    of_group = {"a_group": groups.group, "a_member": members.group, "an_assignment": given.group}
    parts = [_rows(kept.named, of_group[name], **{name: rows}) for name, rows in told.items()]
    return pa.concat_tables([*parts, _rows(kept.named, np.flatnonzero(living.is_gone))])


def _rows(named: pa.Table, group: Numbers, **structs: pa.StructArray) -> pa.Table:
    """Return rows of `STATE` about groups: what is told of each, and what their names are."""
    names = named.take(group)
    columns = [
        structs.get(field.name, pa.nulls(len(group), field.type))
        if field.name not in names.column_names
        else names.column(field.name)
        for field in STATE
    ]
    return pa.Table.from_arrays(columns, schema=STATE)
