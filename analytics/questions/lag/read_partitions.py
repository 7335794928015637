"""Which partitions a group reads, has committed, or should be reading: one row for each.

A group's members own partitions, its commits name partitions, and its subscriptions name topics.
These three need not agree, and what they disagree on is what a lag hides: nobody reads what is
committed and unassigned; what was never committed has no offset to be behind of; what is committed
for a topic that the group no longer subscribes to grows for ever and matters to nobody.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from analytics.questions.lag.commits.commit_keys import KEY

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

ASSIGNED: Final = "assigned"
UNASSIGNED: Final = "unassigned"
NEVER_COMMITTED: Final = "never_committed"
STALE: Final = "stale"

_OWNED: Final = pa.schema(
    [
        ("group_id", pa.string()),
        ("topic", pa.string()),
        ("partition", pa.int32()),
        ("member_id", pa.string()),
    ]
)
OWNER: Final = pa.struct(
    [("member_id", pa.string()), ("client_id", pa.string()), ("client_host", pa.string())]
)
_OWNER: Final = tuple(OWNER.names)
_OF_COMMIT: Final = ("committed_offset", "topic_id", "commit_timestamp", "complete", "missing")
_LAGGING_TYPES: Final = ("classic", "simple", "consumer", "streams")
"""Share groups commit nothing: their backlog is another question."""


@dataclass(frozen=True)
class GroupTables:
    """State tables at the instant; each has the columns of its contract.

    Attributes:
        groups: `groups`.
        members: `members`.
        assignments: `assignments`.
        committed: `committed_offsets`.
        topics: `topics`.
        inputs: Of streams groups, the topics that each subtopology reads.
        lost: By group, why an offset of it that is not there may have been committed all the same.
    """

    groups: pa.Table
    members: pa.Table
    assignments: pa.Table
    committed: pa.Table
    topics: pa.Table
    inputs: Mapping[str, Mapping[str, Sequence[str]]] = field(default_factory=dict)
    lost: Mapping[str, str] = field(default_factory=dict)


def read_partitions(tables: GroupTables) -> tuple[pa.Table, pa.ListArray]:
    """Return a row for each partition that a group owns, has committed or subscribes to.

    Returns:
        `group_id`, `topic`, `partition`; `kind` (`assigned`, `unassigned`, `never_committed` or
        `stale`); `place` (null when nobody owns it: see `with_owners`); `committed_offset`,
        `topic_id`, `commit_timestamp`, `complete` and `missing` of the commit in force (null where
        there is none). And the lists of owners.
    """
    groups = tables.groups.filter(pc.is_in(tables.groups["group_type"], pa.array(_LAGGING_TYPES)))
    names = groups["group_id"].combine_chunks()
    committed = tables.committed.filter(pc.is_in(tables.committed["group_id"], names))
    committed = committed.select([*KEY, *_OF_COMMIT])
    owned, owners = _by_partition(_owned(tables, names), tables.members)
    rows = owned.join(committed, list(KEY), join_type="full outer")
    subscribed = _subscribed(tables.members, names)
    awaited = _partitions_of(subscribed, tables.topics).join(
        rows.select(list(KEY)), list(KEY), join_type="left anti"
    )
    rows = pa.concat_tables([rows, awaited], promote_options="default")
    rows = rows.join(subscribed, ["group_id", "topic"])
    rows = rows.append_column("kind", _kinds(rows, tables.members)).drop_columns(["is_subscribed"])
    rows = _with_lost(rows, tables.lost)
    return rows.sort_by([(name, "ascending") for name in KEY]), owners


def with_owners(rows: pa.Table, owners: pa.ListArray) -> pa.Table:
    """Put lists of owners in place of where they stand; joins do not take lists.

    Args:
        rows: `place`, null where nobody owns the partition.
        owners: Lists of `OWNER`.

    Returns:
        Without `place`; `owners`, and beside them `member_id`, `client_id`, `client_host` of the
        owner where there is just one.
    """
    lists = owners.take(rows["place"].combine_chunks())
    is_one = pc.equal(pc.list_value_length(lists), 1)
    only = lists.values.take(pc.if_else(is_one, lists.offsets.slice(0, len(lists)), None))
    rows = rows.drop_columns(["place"]).append_column("owners", lists)
    for number, name in enumerate(_OWNER):
        rows = rows.append_column(name, pc.struct_field(only, number))
    return rows


def is_owned(rows: pa.Table) -> pa.ChunkedArray:
    """Return whether a member owns each partition, by `owners`."""
    return pc.is_valid(rows["owners"])


def by_owner(rows: pa.Table) -> pa.Table:
    """Return a row for each owner of each partition: those of the owner in place of `owners`.

    Where nobody owns a partition it has one row, without an owner.
    """
    lists = pc.coalesce(rows["owners"], pa.scalar([None], rows["owners"].type)).combine_chunks()
    found = rows.take(pc.list_parent_indices(lists))
    found = found.drop_columns([name for name in ("owners", *_OWNER) if name in found.schema.names])
    for number, name in enumerate(_OWNER):
        found = found.append_column(name, pc.struct_field(lists.flatten(), number))
    return found


def _by_partition(owned: pa.Table, members: pa.Table) -> tuple[pa.Table, pa.ListArray]:
    """Return each owned partition once.

    Returns:
        `group_id`, `topic`, `partition`, and `place`: where in the lists that are returned beside
        it (of `OWNER`) its owners stand.
    """
    rows = owned.group_by(_OWNED.names).aggregate([])
    rows = rows.join(members.select(["group_id", *_OWNER]), ["group_id", "member_id"])
    rows = rows.sort_by([(name, "ascending") for name in (*KEY, "member_id")])
    begins = _begins(rows)
    offsets = pa.array(np.append(begins, rows.num_rows), pa.int32())
    columns = [rows[name].combine_chunks() for name in _OWNER]
    lists = pa.ListArray.from_arrays(
        offsets, pa.StructArray.from_arrays(columns, fields=list(OWNER))
    )
    keys = rows.select(list(KEY)).take(pa.array(begins))
    return keys.append_column("place", pa.array(np.arange(len(begins)))), lists


def _begins(rows: pa.Table) -> NDArray[np.int64]:
    """Return at which rows, in the order of `KEY`, another partition begins.

    Groups of Arrow come in any order, not in that of their first rows.
    """
    is_new = np.ones(rows.num_rows, np.bool_)
    if rows.num_rows:
        is_same = np.ones(rows.num_rows - 1, np.bool_)
        for name in KEY:
            column = rows[name]
            is_same &= pc.equal(column.slice(1), column.slice(0, rows.num_rows - 1)).to_numpy()
        is_new[1:] = ~is_same
    return np.flatnonzero(is_new)


def _with_lost(rows: pa.Table, lost: Mapping[str, str]) -> pa.Table:
    """Say of an offset that is not there that it may have been committed all the same."""
    if not lost:
        return rows
    places = pc.index_in(rows["group_id"], value_set=pa.array(list(lost), pa.string()))
    why = pa.array(list(lost.values()), pa.string()).take(places.combine_chunks())
    is_gone = pc.and_(pc.is_null(rows["committed_offset"]), pc.is_valid(places))
    for name, column in (
        ("complete", pc.if_else(is_gone, pa.scalar(value=False), rows["complete"])),
        ("missing", pc.if_else(is_gone, pc.coalesce(rows["missing"], why), rows["missing"])),
    ):
        rows = rows.set_column(rows.column_names.index(name), name, column)
    return rows


def _owned(tables: GroupTables, names: pa.Array) -> pa.Table:
    """Return the partitions that members own; of streams tasks those that active ones read."""
    given = tables.assignments.filter(
        pc.and_(
            pc.is_in(tables.assignments["group_id"], names),
            pc.equal(tables.assignments["kind"], "current"),
        )
    )
    named = given.filter(pc.is_valid(given["topic"])).select(_OWNED.names)
    tasks = given.filter(
        pc.and_kleene(pc.is_valid(given["subtopology_id"]), pc.equal(given["role"], "active"))
    )
    read = [
        (task["group_id"], topic, task["partition"], task["member_id"])
        for task in tasks.select(
            ["group_id", "subtopology_id", "partition", "member_id"]
        ).to_pylist()
        for topic in tables.inputs.get(task["group_id"], {}).get(task["subtopology_id"], ())
    ]
    columns = list(zip(*read, strict=True)) or [()] * len(_OWNED)
    of_tasks = pa.table(
        [pa.array(each, one.type) for each, one in zip(columns, _OWNED, strict=True)],
        schema=_OWNED,
    )
    return pa.concat_tables([named, of_tasks])


def _subscribed(members: pa.Table, names: pa.Array) -> pa.Table:
    """Return `group_id`, `topic`, `is_subscribed` (true): what members subscribe to by name."""
    members = members.filter(pc.is_in(members["group_id"], names))
    topics = members["subscribed_topics"].combine_chunks()
    of_member = pc.list_parent_indices(topics)
    columns = {
        "group_id": members["group_id"].combine_chunks().take(of_member),
        "topic": pc.list_flatten(topics),
    }
    rows = pa.table(columns).group_by(["group_id", "topic"]).aggregate([])
    return rows.append_column("is_subscribed", pa.repeat(pa.scalar(value=True), rows.num_rows))


def _partitions_of(subscribed: pa.Table, topics: pa.Table) -> pa.Table:
    """Return every partition of the topics that groups subscribe to, where its count is known."""
    there = topics.filter(
        pc.and_(pc.is_null(topics["deleted_at"]), pc.is_valid(topics["partitions"]))
    )
    sizes = there.group_by("topic").aggregate([("partitions", "max")])
    wanted = subscribed.join(sizes, "topic", join_type="inner")
    counts = wanted["partitions_max"].to_numpy().tolist()
    rows = pa.array([row for row, count in enumerate(counts) for _ in range(count)], pa.int64())
    numbers = pa.array([number for count in counts for number in range(count)], pa.int32())
    named = wanted.select(["group_id", "topic"]).take(rows)
    return named.append_column("partition", numbers)


def _kinds(rows: pa.Table, members: pa.Table) -> pa.ChunkedArray:
    """Return what each row is; `is_subscribed` is null where no member names the topic."""
    is_committed = pc.is_valid(rows["committed_offset"])
    # A member whose subscription cannot be read, or is a pattern, may subscribe to any topic.
    is_vague = pc.or_(
        pc.is_null(members["subscribed_topics"]), pc.is_valid(members["subscribed_regex"])
    )
    vague = pc.unique(members.filter(is_vague)["group_id"])
    clear = pc.unique(members["group_id"])
    is_clear = pc.and_not(
        pc.is_in(rows["group_id"], clear.drop_null()), pc.is_in(rows["group_id"], vague)
    )
    is_stale = pc.and_(is_clear, pc.is_null(rows["is_subscribed"]))
    return pc.case_when(
        pc.make_struct(pc.invert(is_committed), pc.is_valid(rows["place"]), is_stale),
        NEVER_COMMITTED,
        ASSIGNED,
        STALE,
        UNASSIGNED,
    )
