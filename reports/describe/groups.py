"""Rows of groups of each type, as Kafka's tools describe them.

What the rows of `describe` are made of: tables at the instant asked about.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import chain, groupby
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from reports.describe.tool_output import CONSUMER, FAMILY_OF, SHARE, STREAMS
from reports.layout.cells import with_values
from schemas.releases import release_key


@dataclass(frozen=True)
class Source:
    """Tables of the groups that are described, with the columns named.

    Attributes:
        groups: The table `groups`.
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

    def groups_of(self, family: str) -> pa.Table:
        """Return the groups that one of the tools describes."""
        types = [kind for kind, each in FAMILY_OF.items() if each == family]
        return self.groups.filter(pc.is_in(self.groups["group_type"], pa.array(types)))

    def members_of(self, family: str) -> pa.Table:
        """Return the members of these groups."""
        return only_groups(self.members, self.groups_of(family))


def only_groups(rows: pa.Table, groups: pa.Table) -> pa.Table:
    """Keep the rows whose `group_id` is one of the groups."""
    return rows.filter(pc.is_in(rows["group_id"], groups["group_id"].combine_chunks()))


def doubts(rows: pa.Table, lost: Mapping[str, str]) -> dict[str, pa.ChunkedArray]:
    """Return `complete` and `missing` of rows that committed offsets were joined to.

    Args:
        rows: `group_id`, `committed_offset` and `missing`.
        lost: By group, why an offset that is not there may have been committed all the same.
    """
    missing = rows["missing"]
    if lost:
        reasons = pa.table({"group_id": list(lost), "lost": list(lost.values())})
        places = pc.index_in(rows["group_id"], value_set=reasons["group_id"].combine_chunks())
        why = reasons["lost"].combine_chunks().take(places.combine_chunks())
        is_there = pc.is_valid(rows["committed_offset"])
        missing = pc.coalesce(missing, pc.if_else(is_there, pa.scalar(None, pa.string()), why))
    return {"complete": pc.is_null(missing), "missing": missing}


def joined(left: pa.Table, right: pa.Table, keys: list[str], how: str = "left outer") -> pa.Table:
    """Join two tables on columns of the same names."""
    return left.join(right, keys, join_type=how)


def sorted_by(rows: pa.Table, *names: str) -> pa.Table:
    """Sort rows ascending by columns."""
    return rows.sort_by([(name, "ascending") for name in names])


def lag(end: pa.ChunkedArray, offset: pa.ChunkedArray) -> pa.ChunkedArray:
    """Return end - offset where both are known and the offset is one."""
    known = pc.if_else(pc.less(offset, 0), pa.scalar(None, pa.int64()), offset)
    return pc.subtract(end, known)


# Lists of partitions and tasks, written as Kafka's tools write them.

Row = Mapping[str, Any]

_ROLES = (("active", "ACTIVE"), ("standby", "STANDBY"), ("warmup", "WARMUP"))


def partitions_text(given: Iterable[Row], release: str, *, of_share: bool = False) -> str | None:
    """Return partitions of topics: `orders:0,1;returns:2` since 4.0, `orders(0,1)` before.

    kafka-share-groups of 4.0 writes each partition on its own; 3.8 and 3.9 leave the topic out,
    which is not copied.

    Args:
        given: Rows with `topic` and `partition`.
        release: Of Kafka.
        of_share: Of a share group.
    """
    topics: dict[str, list[int]] = defaultdict(list)
    for each in given:
        topics[each["topic"]].append(each["partition"])
    if not topics:
        return None
    lists = [(topic, sorted(set(numbers))) for topic, numbers in sorted(topics.items())]
    number = release_key(release)
    if of_share and number < (4, 1):
        return ",".join(f"{topic}:{each}" for topic, numbers in lists for each in numbers)
    if number < (4,):
        return ", ".join(f"{topic}({_numbers(numbers)})" for topic, numbers in lists)
    return ";".join(f"{topic}:{_numbers(numbers)}" for topic, numbers in lists)


def tasks_text(given: Iterable[Row], prefix: str = "") -> str | None:
    """Return streams tasks by role: `ACTIVE: 0:[0,1]; 1:[0]; STANDBY: 0:[2];`.

    Args:
        given: Rows with `role`, `subtopology_id` and `partition`.
        prefix: Goes before each role ("TARGET-").
    """
    rows = list(given)
    words = []
    for role, name in _ROLES:
        tasks = sorted(
            (each["subtopology_id"], each["partition"]) for each in rows if each["role"] == role
        )
        if tasks:
            lists = [
                f"{subtopology}:[{_numbers(number for _, number in numbers)}];"
                for subtopology, numbers in groupby(tasks, key=lambda task: task[0])
            ]
            words.append(f"{prefix}{name}: {' '.join(lists)}")
    return " ".join(words) or None


def _numbers(numbers: Iterable[int]) -> str:
    return ",".join(map(str, numbers))


# Rows of `--state`: one for each group, alike for all types.


def state_rows(source: Source, family: str) -> pa.Table:
    """Return the groups that one of Kafka's tools describes, with their states.

    Returns:
        The columns of `--state --verbose`, and `group_type`.
    """
    groups = source.groups_of(family)
    places = [
        source.coordinators.get(number) for number in groups["coordinator_partition"].to_pylist()
    ]
    return sorted_by(
        pa.table(
            {
                "group": groups["group_id"],
                "coordinator": pa.array(places, pa.string()),
                "assignment_strategy": groups["protocol"],
                "state": groups["state"],
                "group_epoch": groups["epoch"],
                "target_assignment_epoch": groups["assignment_epoch"],
                "assignment_epoch": groups["assignment_epoch"],
                "members": groups["member_count"],
                "group_type": groups["group_type"],
            }
        ),
        "group",
    )


# Rows of classic, simple and consumer groups, as kafka-consumer-groups --describe has them.

_OF_PARTITION = ["group_id", "topic", "partition"]


def offset_rows(source: Source, release: str) -> pa.Table:
    """Return a row for each partition that is owned or committed (``collectGroupsOffsets``)."""
    groups = source.groups_of(CONSUMER)
    committed = only_groups(source.committed, groups).select(
        [*_OF_PARTITION, "committed_offset", "committed_leader_epoch", "missing"]
    )
    rows = joined(_owned(source, groups, release), committed, _OF_PARTITION, "full outer")
    rows = joined(rows, source.ends, ["topic", "partition"])
    return sorted_by(
        pa.table(
            {
                "group": rows["group_id"],
                "topic": rows["topic"],
                "partition": rows["partition"],
                "leader_epoch": rows["committed_leader_epoch"],
                "current_offset": rows["committed_offset"],
                "log_end_offset": rows["log_end_offset"],
                "lag": lag(rows["log_end_offset"], rows["committed_offset"]),
                "consumer_id": rows["member_id"],
                "host": rows["client_host"],
                "client_id": rows["client_id"],
                **doubts(rows, source.lost),
            }
        ),
        "group",
        "topic",
        "partition",
        "consumer_id",
    )


def _owned(source: Source, groups: pa.Table, release: str) -> pa.Table:
    given = only_groups(source.assignments, groups)
    given = given.filter(pc.is_in(given["kind"], pa.array(_held(release))))
    owners = source.members.select(["group_id", "member_id", "client_host", "client_id"])
    return joined(
        given.select([*_OF_PARTITION, "member_id"]), owners, ["group_id", "member_id"], "inner"
    )


def member_rows(source: Source, release: str) -> pa.Table:
    """Return a row for each member (``collectGroupMembers``)."""
    groups = {each["group_id"]: each for each in source.groups_of(CONSUMER).to_pylist()}
    given = _given(source)
    rows = []
    for member in source.members_of(CONSUMER).to_pylist():
        group = groups[member["group_id"]]
        is_classic_group = group["group_type"] != "consumer"
        held = [given[member["group_id"], member["member_id"], kind] for kind in _held(release)]
        current = list(chain.from_iterable(held))
        target = given[member["group_id"], member["member_id"], "target"]
        is_told = member["missing"] is None
        rows.append(
            {
                "group": member["group_id"],
                "consumer_id": member["member_id"],
                "group_instance_id": member["group_instance_id"],
                "host": member["client_host"],
                "client_id": member["client_id"],
                "partitions": len({(each["topic"], each["partition"]) for each in current})
                if is_told
                else None,
                "assignment": partitions_text(current, release),
                # Generations are no member epochs to Kafka's tool.
                "current_epoch": None if is_classic_group else member["member_epoch"],
                "current_assignment": partitions_text(current, release),
                "target_epoch": None if is_classic_group else group["assignment_epoch"],
                "target_assignment": None if is_classic_group else partitions_text(target, release),
                "upgraded": None if is_classic_group else _is_upgraded(member),
                "complete": is_told,
                "missing": member["missing"],
                "assignment_fields_written": member["assignment_fields_written"],
            }
        )
    return sorted_by(pa.Table.from_pylist(rows, _MEMBERS), "group", "consumer_id")


def _held(release: str) -> list[str]:
    """Return the kinds of assignment that are a member's own to the tool of a release.

    Since 4.3 that includes what a member of a consumer group has yet to give up
    (``ConsumerGroupMember.asConsumerGroupDescribeMember``).
    """
    return ["current", *["pending_revocation"] * (release_key(release) >= (4, 3))]


def _is_upgraded(member: dict[str, Any]) -> str | None:
    """Return whether a member of a consumer group speaks its protocol, null where not known."""
    is_classic: bool | None = member["is_classic"]
    return None if is_classic is None else str(not is_classic).lower()


def _given(source: Source) -> dict[tuple[str, str, str], list[dict[str, Any]]]:
    """Return what was given to each member of a group, by kind."""
    given: dict[tuple[str, str, str], list[dict[str, Any]]] = defaultdict(list)
    for each in only_groups(source.assignments, source.groups_of(CONSUMER)).to_pylist():
        given[each["group_id"], each["member_id"], each["kind"]].append(each)
    return given


def group_rows(source: Source) -> pa.Table:
    """Return a row for each group (``collectGroupsState``)."""
    rows = state_rows(source, CONSUMER)
    is_new = [kind == "consumer" for kind in rows["group_type"].to_pylist()]
    for name in ("group_epoch", "target_assignment_epoch"):
        shown = pc.if_else(pa.array(is_new, pa.bool_()), rows[name], pa.scalar(None, pa.int32()))
        rows = with_values(rows, name, shown)
    return rows


_MEMBERS = pa.schema(
    [
        ("group", pa.string()),
        ("consumer_id", pa.string()),
        ("group_instance_id", pa.string()),
        ("host", pa.string()),
        ("client_id", pa.string()),
        ("partitions", pa.int32()),
        ("assignment", pa.string()),
        ("current_epoch", pa.int32()),
        ("current_assignment", pa.string()),
        ("target_epoch", pa.int32()),
        ("target_assignment", pa.string()),
        ("upgraded", pa.string()),
        ("complete", pa.bool_()),
        ("missing", pa.string()),
        ("assignment_fields_written", pa.int32()),
    ]
)


# Rows of share groups, as kafka-share-groups --describe has them.

_SHOWN = ("initializing", "initialized", "unknown")


def share_offset_rows(source: Source) -> pa.Table:
    """Return a row for each share partition (``DescribeShareGroupOffsets``)."""
    shares = only_groups(source.shares, source.groups_of(SHARE))
    rows = shares.filter(pc.is_in(shares["phase"], pa.array(_SHOWN)))
    is_started = pc.is_valid(rows["start_offset"])
    return sorted_by(
        pa.table(
            {
                "group": rows["group_id"],
                "topic": rows["topic"],
                "partition": rows["partition"],
                "leader_epoch": pc.if_else(
                    is_started, rows["leader_epoch"], pa.scalar(None, pa.int32())
                ),
                "start_offset": rows["start_offset"],
                "lag": rows["lag"],
            }
        ),
        "group",
        "topic",
        "partition",
    )


def share_member_rows(source: Source, release: str) -> pa.Table:
    """Return a row for each member."""
    given: dict[tuple[str, str], list[dict[str, Any]]] = defaultdict(list)
    for each in only_groups(source.assignments, source.groups_of(SHARE)).to_pylist():
        if each["kind"] == "current":
            given[each["group_id"], each["member_id"]].append(each)
    rows = [
        {
            "group": each["group_id"],
            "consumer_id": each["member_id"],
            "host": each["client_host"],
            "client_id": each["client_id"],
            "partitions": len(given[each["group_id"], each["member_id"]]),
            "member_epoch": each["member_epoch"],
            "assignment": partitions_text(
                given[each["group_id"], each["member_id"]], release, of_share=True
            ),
        }
        for each in source.members_of(SHARE).to_pylist()
    ]
    return sorted_by(pa.Table.from_pylist(rows, _SHARE_MEMBERS), "group", "consumer_id")


_SHARE_MEMBERS = pa.schema(
    [
        ("group", pa.string()),
        ("consumer_id", pa.string()),
        ("host", pa.string()),
        ("client_id", pa.string()),
        ("partitions", pa.int32()),
        ("member_epoch", pa.int32()),
        ("assignment", pa.string()),
    ]
)


# Rows of streams groups, as kafka-streams-groups --describe has them.


def streams_offset_rows(source: Source) -> pa.Table:
    """Return a row for each partition that is read or committed.

    A partition without a commit is behind by what its log holds.
    """
    groups = source.groups_of(STREAMS)
    committed = only_groups(source.committed, groups).select(
        [*_OF_PARTITION, "committed_offset", "committed_leader_epoch", "missing"]
    )
    rows = joined(read_partitions(source), committed, _OF_PARTITION, "full outer")
    rows = joined(rows, source.ends, ["topic", "partition"])
    offset = pc.coalesce(rows["committed_offset"], rows["log_start_offset"])
    doubt = doubts(rows, source.lost)
    return sorted_by(
        pa.table(
            {
                "group": rows["group_id"],
                "topic": rows["topic"],
                "partition": rows["partition"],
                "current_offset": rows["committed_offset"],
                "leader_epoch": rows["committed_leader_epoch"],
                "log_end_offset": rows["log_end_offset"],
                "offset_lag": pc.if_else(
                    doubt["complete"], pc.subtract(rows["log_end_offset"], offset), None
                ),
                **doubt,
            }
        ),
        "group",
        "topic",
        "partition",
    )


def read_partitions(source: Source) -> pa.Table:
    """Return `group_id`, `topic`, `partition` that active tasks read: the number is the task's."""
    given = _given_tasks(source, "current", "active")
    read = {
        (each["group_id"], topic, each["partition"])
        for each in given
        for topic in source.inputs.get(each["group_id"], {}).get(each["subtopology_id"], ())
    }
    names = ("group_id", "topic", "partition")
    rows = [dict(zip(names, each, strict=True)) for each in sorted(read)]
    schema = pa.schema(
        [("group_id", pa.string()), ("topic", pa.string()), ("partition", pa.int32())]
    )
    return pa.Table.from_pylist(rows, schema)


def _given_tasks(source: Source, kind: str, role: str | None = None) -> Iterator[dict[str, Any]]:
    for each in only_groups(source.assignments, source.groups_of(STREAMS)).to_pylist():
        if each["kind"] == kind and role in (None, each["role"]):
            yield each


def streams_member_rows(source: Source, *, verbose: bool) -> pa.Table:
    """Return a row for each member; `--verbose` adds what it is meant to be given."""
    groups = {each["group_id"]: each for each in source.groups_of(STREAMS).to_pylist()}
    tasks: dict[tuple[str, str, str], list[dict[str, Any]]] = defaultdict(list)
    for kind in ("current", "target"):
        for each in _given_tasks(source, kind):
            tasks[each["group_id"], each["member_id"], kind].append(each)
    rows = []
    for each in source.members_of(STREAMS).to_pylist():
        member = each["group_id"], each["member_id"]
        current = tasks_text(tasks[*member, "current"])
        target = tasks_text(tasks[*member, "target"], "TARGET-")
        rows.append(
            {
                "group": each["group_id"],
                "target_assignment_epoch": groups[each["group_id"]]["assignment_epoch"],
                "topology_epoch": each["topology_epoch"],
                "member": each["member_id"],
                "member_protocol": _PROTOCOLS.get(each["is_classic"]),
                "member_epoch": each["member_epoch"],
                "process": each["process_id"],
                "client_id": each["client_id"],
                "assignments": " ".join(filter(None, (current, target if verbose else None))),
            }
        )
    return sorted_by(pa.Table.from_pylist(rows, _STREAMS_MEMBERS), "group", "member")


_PROTOCOLS = {True: "classic", False: "streams"}
_STREAMS_MEMBERS = pa.schema(
    [
        ("group", pa.string()),
        ("target_assignment_epoch", pa.int32()),
        ("topology_epoch", pa.int32()),
        ("member", pa.string()),
        ("member_protocol", pa.string()),
        ("member_epoch", pa.int32()),
        ("process", pa.string()),
        ("client_id", pa.string()),
        ("assignments", pa.string()),
    ]
)
