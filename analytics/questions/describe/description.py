"""The tables that groups are described from, read from a workspace."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import polars as pl
import pyarrow as pa
import pyarrow.compute as pc

from analytics.contracts import arrow_rows, polars_rows
from analytics.decode.selection import names_wanted
from analytics.engine.part_runs import PartAnswer
from analytics.gaps.group_completeness import GroupCompleteness
from analytics.questions.share.backlog import with_share_lag
from analytics.questions.timeline.topic_lives import METADATA_LOG
from analytics.replayed.end_offsets import end_offsets_at
from analytics.replayed.records import Records
from analytics.replayed.topics import subtopology_inputs, topics_gone, with_names
from analytics.replayed.whole_groups import stored_parts
from analytics.tables.parted_table import Order, PartedTable
from analytics.tables.stored_tables import StoredTables
from schemas import CONSUMER_OFFSETS

if TYPE_CHECKING:
    from analytics.replayed.replayed_workspace import ReplayedWorkspace

# What a comparison with the output of Kafka's own tool has to know of the state.


class AskedNames(NamedTuple):
    """The names, among those that a file has, that are asked about."""

    groups: frozenset[str]
    topics: frozenset[str]


def asked_names(
    state: ReplayedWorkspace, groups: Iterable[str], topics: Iterable[str]
) -> AskedNames:
    """Return the groups and the topics of a file that are asked about."""
    selection = state.tables.selection
    wanted = names_wanted(groups, selection.groups, selection.exclude_groups)
    return AskedNames(frozenset(wanted), frozenset(names_wanted(topics, selection.topics)))


def why_not_described(state: ReplayedWorkspace, groups: Collection[str]) -> dict[str, str]:
    """Return why groups that are not there may be in what the dump lacks, by group.

    Of a group that is known not to have been there it has nothing.
    """
    if not groups:
        return {}
    completeness = GroupCompleteness(state)
    reasons = {group: completeness.of_group(group) for group in sorted(groups)}
    return {
        group: f"cannot tell: {each.reason}" for group, each in reasons.items() if each is not None
    }


def existing_topics(state: ReplayedWorkspace) -> frozenset[str] | None:
    """Return the topics that were there, None where the dump does not tell."""
    stored = StoredTables(state.tables.workspace)
    topics = stored.read("topics", ["topic", "source", "deleted_at"]).to_pylist()
    if all(each["source"] != METADATA_LOG for each in topics):
        return None
    return frozenset(each["topic"] for each in topics if each["deleted_at"] is None)


NEEDS: Final = (
    *("groups", "members", "assignments", "committed_offsets", "share_partitions", "topics"),
    "partition_leaders",
)
"""The tables that are read."""

_MEMBERS: Final = (
    *("group_id", "member_id", "group_instance_id", "client_id", "client_host", "member_epoch"),
    *("is_classic", "process_id", "topology_epoch", "assignment_fields_written", "missing"),
    "unread",
)
_ASSIGNMENTS: Final = (
    *("group_id", "member_id", "kind", "role", "subtopology_id", "topic", "topic_id"),
    "partition",
)
_COMMITTED: Final = (
    *("group_id", "topic", "partition", "committed_offset", "committed_leader_epoch"),
    *("complete", "missing"),
)
_SHARES: Final = (
    *("group_id", "topic", "topic_id", "partition", "phase", "leader_epoch", "start_offset"),
    "delivery_complete_count",
)


@dataclass(frozen=True)
class Description:
    """What rows of Kafka's describing tools are made of.

    Attributes:
        groups: The table `groups`, of those that are described.
        members: The table `members`.
        assignments: The table `assignments`; an id without a name stands for its topic.
        committed: The table `committed_offsets`; an offset that is not known for sure is null.
        shares: The table `share_partitions`, with `lag` as Kafka counts it.
        ends: `topic`, `partition`, `log_start_offset`, `log_end_offset`, where they are known.
        coordinators: `host:port (id)` by partition of the offsets topic.
        inputs: Of streams groups, the topics that each subtopology reads.
        lost: By group, why an offset of it that is not there may have been committed all the same.
        topics: The names of topics among all these that are asked about; None is all of them.
    """

    groups: pa.Table
    members: pa.Table
    assignments: pa.Table
    committed: pa.Table
    shares: pa.Table
    ends: pa.Table
    coordinators: Mapping[int, str] = field(default_factory=dict)
    inputs: Mapping[str, Mapping[str, tuple[str, ...]]] = field(default_factory=dict)
    lost: Mapping[str, str] = field(default_factory=dict)
    topics: pa.Array | None = None


class Described(NamedTuple):
    """A description, and what to know when reading it.

    Attributes:
        description: The tables.
        warnings: Which topics have no name, one sentence each.
    """

    description: Description
    warnings: tuple[str, ...]


def described_groups(
    state: ReplayedWorkspace,
    groups: pa.Table,
    end_offsets: str | None = None,
    *,
    is_few: bool = False,
) -> Described:
    """Read what describes groups.

    Args:
        state: With the tables of `NEEDS`.
        groups: Rows of the table `groups`.
        end_offsets: A file that says where logs ended.
        is_few: The groups are few, and no rows of others are read.

    Raises:
        GroupscopeError: The file is not what it has to be, or a table cannot be read.
    """
    tables, names = state.tables, groups["group_id"].combine_chunks()
    few = pc.field("group_id").isin(names) if is_few else None
    given = _of_groups(tables.read("assignments", _ASSIGNMENTS, few), names)
    shares = _of_groups(tables.read("share_partitions", _SHARES, few), names)
    gone = topics_gone(state)
    (given, unnamed), (shares, others) = (
        with_names(_of_topics_there(rows, gone)) for rows in (given, shares)
    )
    committed = without_incomplete(tables.read("committed_offsets", _COMMITTED, few))
    ends = end_offsets_at(state, end_offsets)
    inputs = subtopology_inputs(state)
    description = Description(
        groups=groups,
        members=tables.read("members", _MEMBERS, few),
        assignments=given,
        committed=committed,
        shares=arrow_rows(with_share_lag(polars_rows(shares), polars_rows(ends))),
        ends=ends,
        coordinators=coordinators(state),
        inputs=inputs,
        lost=GroupCompleteness(state).lost_offsets_of(groups),
        topics=_topics_wanted(state, (given, committed, shares, ends), inputs),
    )
    return Described(description, tuple(dict.fromkeys((*unnamed, *others))))


AT_ONCE: Final = 500_000
"""So many rows of whole groups are described together, about."""
_OFFSETS: Final = "described_offsets"
_OF_OFFSETS: Final[Mapping[str, Sequence[str]]] = {
    "groups": ("group_id", "group_type"),
    "members": ("group_id", "member_id", "client_id", "client_host"),
    "assignments": _ASSIGNMENTS,
    "committed_offsets": _COMMITTED,
    "share_partitions": ("group_id", "topic", "topic_id"),
}
"""What is read of each group to describe its committed offsets alone."""


class OffsetsOfAll(NamedTuple):
    """Rows of committed offsets of any number of groups, and what to know when reading them.

    Attributes:
        rows: By `group`, all of each as they are made.
        warnings: Which topics have no name, one sentence each.
    """

    rows: PartedTable
    warnings: tuple[str, ...]


def offsets_of_all(
    state: ReplayedWorkspace,
    make: Callable[[Description], pa.Table],
    end_offsets: str | None = None,
) -> OffsetsOfAll:
    """Describe committed offsets of all groups that are asked about, some groups at a time.

    Args:
        state: With the tables of `NEEDS`.
        make: Makes rows, with `group`, of a description of some whole groups that has what
            committed offsets are described by; for Spark a function of a module, or a partial of
            one.
        end_offsets: A file that says where logs ended.

    Raises:
        GroupscopeError: The file is not what it has to be, or a table cannot be read.
    """
    work = partial(_offsets_of_part, make, end_offsets_at(state, end_offsets), topics_gone(state))
    runner = state.runner
    with stored_parts(state.tables, _OF_OFFSETS, AT_ONCE, runner.folder) as parts:
        made = runner.run(work, parts, {_OFFSETS: Order(("group",), _by_group)})
    unnamed = dict.fromkeys(sentence for each in made.sums for sentence in each)
    return OffsetsOfAll(made.tables[_OFFSETS], tuple(unnamed))


def _offsets_of_part(
    make: Callable[[Description], pa.Table],
    ends: pa.Table,
    deleted_topics: pa.Array,
    rows: Mapping[str, pl.DataFrame],
) -> PartAnswer:
    """Return what is made of some whole groups, and which topics have no name.

    Args:
        make: As `offsets_of_all` takes it.
        ends: Of `end_offsets_at`.
        deleted_topics: Of `topics_gone`.
        rows: `_OF_OFFSETS` of theirs.
    """
    tables = {name: arrow_rows(each) for name, each in rows.items()}
    # Share state outlives its group.
    names = tables["groups"]["group_id"].combine_chunks()
    (given, unnamed), (shares, others) = (
        with_names(_of_topics_there(_of_groups(tables[name], names), deleted_topics))
        for name in ("assignments", "share_partitions")
    )
    committed = without_incomplete(tables["committed_offsets"])
    description = Description(tables["groups"], tables["members"], given, committed, shares, ends)
    described = _by_group(polars_rows(make(description)))
    return PartAnswer({_OFFSETS: described}, tuple(dict.fromkeys((*unnamed, *others))))


def _by_group(rows: pl.DataFrame) -> pl.DataFrame:
    return rows.sort("group", maintain_order=True)


def nothing_described(state: ReplayedWorkspace) -> Description:
    """Return a description without groups and offsets, for the groups of another moment."""
    none = pa.table({})
    return Description(none, none, none, none, none, none, coordinators(state))


def without_incomplete(committed: pa.Table) -> pa.Table:
    """Return committed offsets with null for those that the dump does not tell for sure.

    Args:
        committed: Rows of the table `committed_offsets`.
    """
    for name in ("committed_offset", "committed_leader_epoch"):
        known = pc.if_else(committed["complete"], committed[name], None)
        committed = committed.set_column(committed.column_names.index(name), name, known)
    return committed


def _of_groups(rows: pa.Table, names: pa.Array) -> pa.Table:
    return rows.filter(pc.is_in(rows["group_id"], names))


def _of_topics_there(rows: pa.Table, deleted: pa.Array) -> pa.Table:
    return rows.filter(pc.invert(pc.is_in(rows["topic_id"], deleted)))


def _topics_wanted(
    state: ReplayedWorkspace,
    tables: tuple[pa.Table, ...],
    inputs: Mapping[str, Mapping[str, tuple[str, ...]]],
) -> pa.Array:
    read = {topic for group in inputs.values() for topics in group.values() for topic in topics}
    named = [pc.unique(rows["topic"]).cast(pa.string()) for rows in tables]
    return state.topics_wanted(pa.chunked_array([*named, pa.array(sorted(read), pa.string())]))


# Which broker coordinated a group, where the metadata log tells.


def coordinators(state: ReplayedWorkspace) -> dict[int, str]:
    """Return `host:port (id)` by partition of the offsets topic, as Kafka's tools print it.

    Where a partition has no leader at the instant, the only replica that could lead it is named.
    """
    tables = StoredTables(state.tables.workspace)
    leaders = tables.read(
        "partition_leaders",
        ["partition", "leader", "isr", "elr"],
        pc.field("topic") == CONSUMER_OFFSETS,
    ).to_pylist()
    places = _places(state)
    named: dict[int, str] = {}
    for each in leaders:
        broker = _leader_of(each)
        if broker in places:
            named[each["partition"]] = f"{places[broker]} ({broker})"
    return named


def _leader_of(row: dict[str, Any]) -> int | None:
    """Return the leader, else the only replica that could be; a row of `partition_leaders`."""
    leader: int | None = row["leader"]
    if leader is not None and leader >= 0:
        return leader
    candidates = set(row["isr"] or ()) | set(row["elr"] or ())
    return candidates.pop() if len(candidates) == 1 else None


def _places(state: ReplayedWorkspace) -> dict[int, str]:
    """Return the first address each broker registered under."""
    places = {}
    for each in Records(state).table("register_broker_record", ["value"])["value"].to_pylist():
        if each and each["end_points"]:
            first = each["end_points"][0]
            places[each["broker_id"]] = f"{first['host']}:{first['port']}"
    return places
