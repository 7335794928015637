"""Rows of streams groups, as kafka-streams-groups --describe has them."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from reports.describe.assigned import tasks_text
from reports.describe.columns import STREAMS
from reports.describe.source import Source, doubts, joined, only_groups, sorted_by

_OF_PARTITION = ["group_id", "topic", "partition"]


def offset_rows(source: Source) -> pa.Table:
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
    given = _given(source, "current", "active")
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


def _given(source: Source, kind: str, role: str | None = None) -> Iterator[dict[str, Any]]:
    for each in only_groups(source.assignments, source.groups_of(STREAMS)).to_pylist():
        if each["kind"] == kind and role in (None, each["role"]):
            yield each


def member_rows(source: Source, *, verbose: bool) -> pa.Table:
    """Return a row for each member; `--verbose` adds what it is meant to be given."""
    groups = {each["group_id"]: each for each in source.groups_of(STREAMS).to_pylist()}
    tasks: dict[tuple[str, str, str], list[dict[str, Any]]] = defaultdict(list)
    for kind in ("current", "target"):
        for each in _given(source, kind):
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
    return sorted_by(pa.Table.from_pylist(rows, _MEMBERS), "group", "member")


_PROTOCOLS = {True: "classic", False: "streams"}
_MEMBERS = pa.schema(
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
