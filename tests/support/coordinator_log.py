"""Records of random histories as rows of the coordinator's log, written down one by one."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pyarrow as pa

from analytics.replay.groups.group_records import (
    CLASSIC,
    COMMIT,
    CURRENT,
    GROUP,
    KINDS,
    MEMBER,
    RECORDS,
    STREAMS,
    TARGET,
)
from tests.support.reference_group_coordinator import FIELDS, ROLES

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from analytics.replay.groups.group_records import Kind
    from tests.support.reference_offsets import GroupRecord

NUMBERS = {name: number for number, name in enumerate(KINDS)}
EPOCHS = {
    "group": ("generation", "epoch"),
    CURRENT: ("member_epoch",),
    "assignment_epoch": ("assignment_epoch",),
    "topology": ("epoch",),
}
Row = dict[str, Any]


def log_rows(records: Iterable[GroupRecord], ends: Mapping[int, int]) -> pa.Table:
    """Rows of `RECORDS`, cut at the ends, those of each partition in the order of its log."""
    rows: list[Row] = []
    removed: dict[tuple[int, str], int] = {}
    commits: list[Row] = []
    for record in records:
        if record.offset >= ends.get(record.partition, record.offset + 1):
            continue
        if record.table == "offset_commit" and record.value is not None:
            commits.append(_place(record, record.key["group"], COMMIT))
        elif record.table in KINDS:
            row = _row(record, KINDS[record.table])
            rows.append(row)
            if row["is_tombstone"] and KINDS[record.table].role == GROUP:
                removed[record.partition, row["group_id"]] = record.offset
    first: dict[tuple[int, str], Row] = {}
    for row in commits:
        group = row["coordinator_partition"], row["group_id"]
        if row["offset"] > removed.get(group, -1):
            first.setdefault(group, row)
    rows += first.values()
    rows.sort(key=lambda row: (row["coordinator_partition"], row["offset"]))
    return pa.Table.from_pylist(rows, RECORDS)


def _place(record: GroupRecord, group: str, kind: int) -> Row:
    return {
        "coordinator_partition": record.partition,
        "group_id": group,
        "kind": kind,
        "offset": record.offset,
        "leader_epoch": record.leader_epoch,
        "is_tombstone": False,
    }


def _row(record: GroupRecord, kind: Kind) -> Row:
    name = record.key["group" if kind.family == CLASSIC else "group_id"]
    row = _place(record, name, NUMBERS[record.table])
    row["member_id"] = record.key.get("member_id")
    row["is_tombstone"] = record.value is None
    value = record.value
    if value is None:
        return row
    for field in EPOCHS.get(kind.role, ()):
        row["epoch"] = value.get(field, row.get("epoch"))
    if kind.family == CLASSIC:
        for field in ("protocol", "leader", "protocol_type"):
            row[field] = value[field] or None
        row["state_ms"] = value["current_state_timestamp"]
        row["members"] = [_classic_member(each) for each in value["members"]]
        row["items"] = [
            {"member_id": each["member_id"], "kind": "current", **given}
            for each in value["members"]
            for given in (each["assignment_decoded"] or {}).get("assigned_partitions", ())
        ]
    elif kind.role == GROUP:
        row["validated_epoch"] = value.get("validated_topology_epoch")
    elif kind.role == MEMBER:
        row["members"] = [_member(value)]
    elif kind.role == CURRENT:
        row["previous_epoch"] = value["previous_member_epoch"]
        row["member_state"] = value["state"]
    if kind.role in {CURRENT, TARGET}:
        row["items"] = [each for what in FIELDS for each in _items(value, kind, what)]
    return row


def _absent(number: int | None) -> int | None:
    return None if number == -1 else number


def _classic_member(member: Mapping[str, Any]) -> Row:
    subscription = member["subscription_decoded"] or {}
    session = _absent(member["session_timeout"])
    rebalance = _absent(member["rebalance_timeout"])
    return {
        **{name: member[name] for name in ("member_id", "client_id", "client_host")},
        "group_instance_id": member["group_instance_id"],
        "rack_id": subscription.get("rack_id"),
        "subscribed_topics": subscription.get("topics"),
        "session_timeout_ms": session,
        "rebalance_timeout_ms": session if rebalance is None else rebalance,
        "is_classic": True,
    }


def _member(value: Mapping[str, Any]) -> Row:
    classic = value.get("classic_member_metadata")
    return {
        "group_instance_id": value.get("instance_id"),
        "client_id": value["client_id"],
        "client_host": value["client_host"],
        "rack_id": value["rack_id"],
        "subscribed_topics": value.get("subscribed_topic_names"),
        "subscribed_regex": value.get("subscribed_topic_regex") or None,
        "server_assignor": value.get("server_assignor"),
        "rebalance_timeout_ms": _absent(value.get("rebalance_timeout_ms")),
        "session_timeout_ms": classic and classic["session_timeout_ms"],
        "is_classic": classic is not None,
        "process_id": value.get("process_id"),
        "topology_epoch": value.get("topology_epoch"),
    }


def _items(value: Mapping[str, Any], kind: Kind, what: str) -> Iterable[Row]:
    if kind.family != STREAMS:
        for given in value.get(FIELDS[what]) or ():
            yield {"kind": what, **given}
        return
    if (what == TARGET) != (kind.role == TARGET):
        return
    suffix = "_pending_revocation" if what == "pending_revocation" else ""
    for role in ROLES:
        for given in value.get(f"{role}_tasks{suffix}") or ():
            yield {"kind": what, "role": role, **given}
