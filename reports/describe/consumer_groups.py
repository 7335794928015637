"""Rows of classic, simple and consumer groups, as kafka-consumer-groups --describe has them."""

from __future__ import annotations

from collections import defaultdict
from itertools import chain
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from reports.describe.assigned import partitions_text
from reports.describe.columns import CONSUMER
from reports.describe.source import Source, doubts, joined, lag, only_groups, sorted_by
from reports.describe.state_rows import state_rows
from schemas.releases import release_key

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
        place = rows.column_names.index(name)
        shown = pc.if_else(pa.array(is_new, pa.bool_()), rows[name], pa.scalar(None, pa.int32()))
        rows = rows.set_column(place, name, shown)
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
