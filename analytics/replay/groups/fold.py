"""The records of groups, folded to what the coordinators keep of them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import reduce
from operator import and_
from typing import TYPE_CHECKING, Final

import numpy as np
import polars as pl
import pyarrow as pa
import pyarrow.compute as pc

from analytics.contracts import arrow_rows, in_key_order, polars_rows
from analytics.replay.groups.group_records import (
    ASSIGNMENT_EPOCH,
    CLASSIC_FAMILY,
    COMMIT,
    CONSUMER_FAMILY,
    CURRENT,
    FAMILIES,
    GROUP,
    GROUP_KEY,
    GROUPS,
    MEMBER,
    NONE,
    OF_MEMBERS,
    RECORDS,
    REMOVED_ASSIGNMENT_EPOCH,
    SHARE_FAMILY,
    STATE,
    STREAMS_FAMILY,
    TARGET,
    TOPOLOGY,
    CodedLog,
    coded,
    dense,
    last_row,
    numbers,
)
from analytics.replay.groups.lives import (
    DecidingRows,
    InForce,
    deciding_rows,
    first_since_tombstone,
    in_force,
    lives,
    optional,
)
from analytics.replay.groups.member_rows import (
    STABLE,
    Members,
    assignment_rows,
    member_rows,
    struct,
)

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from analytics.replay.groups.group_records import Flags, Numbers
    from analytics.replay.log.log_times import Decoded
    from analytics.replay.log.rules import ReplayRules

# Everything a coordinator keeps of a group follows from the last value and the last tombstone of
# each key, and from where the group's present life began: what the log cleaner leaves of a log is
# as good as the log. So the fold does what the cleaner does, and more: whenever as many records
# have come as were kept, it drops those that can matter no more, also those of lives that have
# ended. It holds the records of the groups and members that live, and of a group that is gone
# those few that ended it.

# The fold of group records as frames: each partition of ``__consumer_offsets`` is one log.

_KINDS: Final = ("a_group", "a_member", "an_assignment")
_IS_GONE: Final = reduce(and_, (pc.field(each).is_null() for each in _KINDS))


@dataclass(frozen=True)
class GroupState:
    """What the coordinators keep of groups at an instant.

    Attributes:
        rows: By column of `STATE` (``a_group``, ``a_member``, ``an_assignment``) its rows:
            `GROUP_KEY` and the fields of that column.
        removed_groups: `GROUP_KEY` of the groups that are gone, of which nothing else is kept.
        committed: The groups with a commit since they were last removed, in effect or not:
            `coordinator_partition`, `group_id`, `offset` (of the first). None where offsets alone
            make a group, before 4.0.
    """

    rows: Mapping[str, pl.DataFrame]
    removed_groups: pl.DataFrame
    committed: pl.DataFrame | None


def folded_groups(log: pl.DataFrame, decoded: Decoded, rules: ReplayRules) -> GroupState:
    """Fold the records about groups.

    Args:
        log: Of `coordinator_log`, cut at an instant.
        decoded: The decoded tables, cut likewise, of the same groups.
        rules: Of the release.
    """
    records = log.with_columns(pl.col("position").struct.field("leader_epoch")).select(
        RECORDS.names
    )
    committed = None
    if rules.groups_end_by_tombstones:
        committed = _committed(decoded["offset_commit"], log)
        made = committed.with_columns(
            kind=pl.lit(COMMIT, pl.Int32()), is_tombstone=pl.lit(value=False)
        )
        records = pl.concat([records, made], how="diagonal")
    rows = list(group_state(_in_order(records), rules))
    gone = pa.Table.from_batches(rows, STATE).filter(_IS_GONE).select(GROUP_KEY)
    return GroupState(
        {each: _rows_of_kind(rows, each) for each in _KINDS}, polars_rows(gone), committed
    )


def groups_gone(state: GroupState) -> pl.DataFrame | None:
    """Return the groups whose offsets outlive them: nothing is answered for them.

    The tombstone of a group leaves its offsets in memory (``OffsetMetadataManager``), where
    nobody is told of them until a commit or a member makes the group again. Brokers delete the
    offsets first, or write what replaces the group in the same batch; where compaction took that,
    the coordinator that loads what is left has the offsets and no group.
    """
    if state.committed is None:
        return None
    return state.removed_groups


def _rows_of_kind(batches: Sequence[pa.RecordBatch], what: str) -> pl.DataFrame:
    """Return what rows of `STATE` keep of one kind; a batch seldom has rows of several."""
    names = [*GROUP_KEY, what]
    some = [each.select(names) for each in batches if each.column(what).null_count < each.num_rows]
    schema = pa.schema([STATE.field(name) for name in names])
    kept = polars_rows(pa.Table.from_batches(some, schema))
    return kept.filter(pl.col(what).is_not_null()).unnest(what)


def _in_order(records: pl.DataFrame) -> Iterator[pa.RecordBatch]:
    """Yield rows of `RECORDS` partition after partition; only some lie there as Arrow at a time."""
    # To take lists out of many pieces costs as much as to put these together, every time.
    records = in_key_order(records.rechunk(), (GROUP_KEY[0], "offset"))
    for start in range(0, records.height, AT_ONCE):
        yield from arrow_rows(records.slice(start, AT_ONCE)).combine_chunks().to_batches()


def _committed(commits: pl.DataFrame, log: pl.DataFrame) -> pl.DataFrame:
    """Return the first commit of each group since a tombstone of a group, of any type."""
    removed = (
        log.filter((pl.col("role") == GROUP) & pl.col("is_tombstone"))
        .group_by(GROUP_KEY)
        .agg(removed_at=pl.col("offset").max())
    )
    return (
        commits.lazy()
        .filter(~pl.col("is_tombstone"))
        .select(
            pl.col("partition").alias(GROUP_KEY[0]),
            pl.col("key").struct.field("group").alias(GROUP_KEY[1]),
            "offset",
        )
        .join(removed.lazy(), GROUP_KEY, "left")
        .filter(pl.col("removed_at").is_null() | (pl.col("offset") > pl.col("removed_at")))
        .group_by(GROUP_KEY)
        .agg(pl.col("offset").min())
        .collect()
    )


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


# The groups that have records, as rows of `groups` without completeness.
#
# Of a classic group only Empty and Stable can be recovered from records: a rebalance under way
# leaves none. Group epoch and assignment epoch of the other types stand in records of their own
# (KIP-848).

_NO_TOPOLOGY = -(1 << 40)
"""No epoch: these are 32 bits wide."""


@dataclass(frozen=True)
class Groups:
    """The groups: their rows, the group of each, and by group its assignment epoch."""

    rows: pa.StructArray
    group: Numbers
    assignment_epoch: Numbers


def group_rows(in_force: InForce, members: Members, rules: ReplayRules) -> Groups:
    """Return the groups that have records."""
    group = np.flatnonzero(in_force.lives.is_there)
    family = in_force.lives.family[group]
    is_classic = family == CLASSIC_FAMILY
    own = in_force.of_groups(GROUP)[0]
    record = own[group]
    assignment_epoch = _assignment_epochs(in_force, rules)
    epoch = numbers(in_force.values_in("epoch", record), rules.initial_epoch)
    count = np.bincount(members.group, minlength=in_force.log.groups)[group]
    type_ = np.array(FAMILIES, object)[family]
    state = _states(in_force, members, assignment_epoch, epoch, rules)
    told = {
        "group_type": _words(type_),
        "protocol_type": _of_classic(in_force, "protocol_type", record, is_classic, type_),
        "state": _words(np.where(count == 0, "Empty", state)),
        "epoch": optional(epoch, np.zeros(len(group), bool)),
        "assignment_epoch": optional(assignment_epoch[group], is_classic),
        "protocol": _of_classic(
            in_force, "protocol", record, is_classic, _assignors(in_force, members, rules)
        ),
        "leader": in_force.values_in("leader", record),
        "state_ms": in_force.values_in("state_ms", record),
        "member_count": optional(count, np.zeros(len(group), bool)),
        "record_offset": in_force.values_in("offset", record),
        "leader_epoch": in_force.values_in("leader_epoch", record),
        "known_from": pc.fill_null(
            in_force.values_in("offset", np.where(is_classic, record, in_force.lives.since[group])),
            NONE,
        ),
    }
    return Groups(struct(GROUPS, told), group, assignment_epoch)


def _assignment_epochs(in_force: InForce, rules: ReplayRules) -> Numbers:
    value, tombstone = in_force.of_groups(ASSIGNMENT_EPOCH)
    stored = numbers(in_force.values_in("epoch", value), rules.initial_epoch)
    return np.where(tombstone > value, REMOVED_ASSIGNMENT_EPOCH, stored)


def _states(
    in_force: InForce,
    members: Members,
    assignment_epoch: Numbers,
    epoch: Numbers,
    rules: ReplayRules,
) -> np.ndarray:
    """Return the states of the groups that are there, as far as they have members."""
    group = np.flatnonzero(in_force.lives.is_there)
    family = in_force.lives.family[group]
    there = (members.state == STABLE) & (members.epoch == assignment_epoch[members.group])
    is_reconciled = np.ones(in_force.log.groups, bool)
    is_reconciled[members.group[~there]] = False
    ready: Flags = (family != STREAMS_FAMILY) | _has_topology(in_force, rules)[group]
    return np.select(
        [
            np.isin(family, (CLASSIC_FAMILY, SHARE_FAMILY)),
            ~ready,
            epoch > assignment_epoch[group],
            ~is_reconciled[group],
        ],
        ["Stable", "NotReady", "Assigning", "Reconciling"],
        "Stable",
    ).astype(object)


def _has_topology(in_force: InForce, rules: ReplayRules) -> Flags:
    """Whether a streams group's topology is usable, as far as its release tells from records."""
    if not rules.streams_readiness_is_recorded:
        return np.zeros(in_force.log.groups, bool)
    value, tombstone = in_force.of_groups(TOPOLOGY)
    topology = numbers(
        in_force.values_in("epoch", np.where(value > tombstone, value, NONE)), _NO_TOPOLOGY
    )
    own = in_force.of_groups(GROUP)[0]
    stored = numbers(in_force.values_in("validated_epoch", own), _NO_TOPOLOGY)
    validated = np.where(own == NONE, rules.initial_topology_epoch, stored)
    ready: Flags = (topology == validated) & (topology != _NO_TOPOLOGY)
    return ready


def _assignors(in_force: InForce, members: Members, rules: ReplayRules) -> np.ndarray:
    """Return the assignors of the groups that are there; those of classic groups are stored."""
    group = np.flatnonzero(in_force.lives.is_there)
    family = in_force.lives.family[group]
    asked = np.full(in_force.log.groups, rules.default_consumer_assignor, object)
    # That which most members ask for; a later row replaces an earlier one.
    votes = (
        pa.table({"group": members.group, "name": members.rows.field("server_assignor")})
        .filter(pc.is_valid(pc.field("name")))
        .group_by(["group", "name"])
        .aggregate([("name", "count")])
        .sort_by([("name_count", "ascending"), ("name", "ascending")])
    )
    asked[votes["group"].to_numpy()] = votes["name"].to_numpy()
    found = np.full(len(group), None, object)
    found[family == CONSUMER_FAMILY] = asked[group[family == CONSUMER_FAMILY]]
    found[family == SHARE_FAMILY] = rules.share_assignor
    return found


def _of_classic(
    in_force: InForce, column: str, record: Numbers, is_classic: Flags, others: np.ndarray
) -> pa.Array:
    """Return what classic groups' records say in a column, and something else of the others."""
    stored = in_force.values_in(column, np.where(is_classic, record, NONE))
    return pc.if_else(pa.array(is_classic), stored, _words(others))


def _words(words: np.ndarray) -> pa.Array:
    return pa.array(words, pa.string())
