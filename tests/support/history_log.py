"""Records of groups as rows of the coordinator's log that history is made of, one by one."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any

import polars as pl

from analytics.replay.groups.group_records import (
    CLASSIC,
    CONSUMER,
    CURRENT,
    GROUP,
    KINDS,
    MEMBER,
    MEMBER_ROLES,
    STREAMS,
    TARGET,
    Kind,
)
from schemas import all_record_types
from tests.support.coordinator_log import EPOCHS
from tests.support.reference_group_coordinator import FIELDS, ROLES
from tests.support.reference_offsets import GroupRecord

Row = dict[str, Any]
NUMBERS = {kind.table: kind.ids[0] for kind in all_record_types().values()}
ABOUT = pl.Struct(dict.fromkeys(("group_instance_id", "client_id", "client_host"), pl.String()))
ITEM = pl.Struct(
    {
        **dict.fromkeys(
            ("member_id", "kind", "role", "subtopology_id", "topic", "topic_id"), pl.String()
        ),
        "partitions": pl.List(pl.Int32()),
        "about": ABOUT,
    }
)
KEY = {"coordinator_partition": pl.Int32(), "group_id": pl.String()}
LOG = pl.Schema(
    {
        **KEY,
        "family": pl.String(),
        "role": pl.String(),
        "creates": pl.Boolean(),
        "record_type": pl.Int16(),
        "member_id": pl.String(),
        "offset": pl.Int64(),
        "timestamp": pl.Datetime("us", "UTC"),
        "batch": pl.Int64(),
        "is_tombstone": pl.Boolean(),
        "position": pl.Struct(
            {
                "leader_epoch": pl.Int32(),
                "copy": pl.String(),
                "segment": pl.String(),
                "batch_position": pl.Int64(),
            }
        ),
        **dict.fromkeys(("epoch", "member_state"), pl.Int32()),
        **dict.fromkeys(("protocol", "leader", "protocol_type"), pl.String()),
        **dict.fromkeys(("unread", "validated_epoch"), pl.Int32()),
        "process_id": pl.String(),
        "about": ABOUT,
        "items": pl.List(ITEM),
    }
)
COMMITS = pl.Schema({**KEY, "offset": pl.Int64()})
TOPOLOGIES = pl.Schema(
    {
        **KEY,
        "subtopologies": pl.List(
            pl.Struct(
                {
                    "subtopology_id": pl.String(),
                    "source_topics": pl.List(pl.String()),
                    "repartition_source_topics": pl.List(pl.Struct({"name": pl.String()})),
                }
            )
        ),
    }
)


@dataclass(frozen=True)
class Written:
    """A record, and with which others it was written: the offset of the first of them."""

    record: GroupRecord
    batch: int


def history_rows(records: Iterable[GroupRecord | Written]) -> dict[str, pl.DataFrame]:
    """Return what history is made of; a record without a batch was written alone."""
    rows: dict[str, list[Row]] = {"log": [], "commits": []}
    for each in records:
        record = each.record if isinstance(each, Written) else each
        if record.table in KINDS:
            batch = each.batch if isinstance(each, Written) else record.offset
            rows["log"].append(_row(record, KINDS[record.table]) | {"batch": batch})
        elif record.table == "offset_commit" and record.value is not None:
            place = {"coordinator_partition": record.partition, "group_id": record.key["group"]}
            rows["commits"].append({**place, "offset": record.offset})
    return {
        "log": pl.DataFrame(rows["log"], LOG),
        "commits": pl.DataFrame(rows["commits"], COMMITS),
        "topologies": pl.DataFrame([], TOPOLOGIES),
    }


def topic_names(names: Mapping[str, str]) -> pl.DataFrame:
    """Return names by id as history takes them."""
    schema = {"topic_id": pl.String, "name": pl.String}
    return pl.DataFrame({"topic_id": list(names), "name": list(names.values())}, schema)


def _row(record: GroupRecord, kind: Kind) -> Row:
    value = record.value
    row = {
        "coordinator_partition": record.partition,
        "group_id": record.key["group" if kind.family == CLASSIC else "group_id"],
        "family": kind.family,
        "role": kind.role,
        "creates": kind.creates,
        "record_type": NUMBERS[record.table],
        "member_id": record.key["member_id"] if kind.role in MEMBER_ROLES else None,
        "offset": record.offset,
        "is_tombstone": value is None,
        "position": {"leader_epoch": record.leader_epoch},
    }
    return row if value is None else row | _said(value, kind)


def _said(value: Mapping[str, Any], kind: Kind) -> Row:
    said: Row = {}
    for field in EPOCHS.get(kind.role, ()):
        said["epoch"] = value.get(field, said.get("epoch"))
    if kind.role == GROUP and kind.family == CLASSIC:
        members = value["members"]
        said |= {name: value.get(name) or None for name in ("protocol", "leader", "protocol_type")}
        said["unread"] = sum(
            bool(each.get("assignment")) and not each.get("assignment_decoded") for each in members
        )
        said["items"] = [item for each in members for item in _classic_items(each)]
    elif kind.role == GROUP:
        said["validated_epoch"] = value.get("validated_topology_epoch")
    elif kind.role == MEMBER:
        said["about"] = _about(value, value.get("instance_id"))
        said["process_id"] = value.get("process_id")
        said["items"] = _member_items(value, kind)
    elif kind.role == CURRENT:
        said["member_state"] = value.get("state")
        said["items"] = [_there(), *_given(value, kind)]
    elif kind.role == TARGET:
        said["items"] = list(_given(value, kind))
    return said


def _about(value: Mapping[str, Any], instance: str | None) -> Row:
    named = {name: value.get(name) for name in ("client_id", "client_host")}
    return {"group_instance_id": instance, **named}


def _classic_items(member: Mapping[str, Any]) -> list[Row]:
    of = {
        "member_id": member["member_id"],
        "about": _about(member, member.get("group_instance_id")),
    }
    topics = (member.get("subscription_decoded") or {}).get("topics")
    given = (member.get("assignment_decoded") or {}).get("assigned_partitions") or ()
    current = [{"kind": CURRENT, **each} for each in given]
    return [item | of for item in (_there(), _subscribed(topics), *current)]


def _member_items(value: Mapping[str, Any], kind: Kind) -> list[Row]:
    topics = None if kind.family == STREAMS else value.get("subscribed_topic_names")
    items = [_there(), _subscribed(topics, value.get("subscribed_topic_regex"))]
    if kind.family == CONSUMER:
        name = value.get("server_assignor") or None
        items.append({"kind": "assignor", "topic": name, "partitions": [-1] if name else []})
    return items


def _there() -> Row:
    return {"kind": "presence", "partitions": [-1]}


def _subscribed(topics: Iterable[str] | None, regex: str | None = None) -> Row:
    words = f"{','.join(sorted(topics or ()))} {regex or ''}"
    return {"kind": "subscription", "topic": words, "partitions": [-1]}


def _given(value: Mapping[str, Any], kind: Kind) -> Iterable[Row]:
    for what, name in FIELDS.items():
        if (what == TARGET) != (kind.role == TARGET):
            continue
        if kind.family != STREAMS:
            yield from ({"kind": what, **each} for each in value.get(name) or ())
            continue
        suffix = "_pending_revocation" if what == "pending_revocation" else ""
        for role in ROLES:
            for each in value.get(f"{role}_tasks{suffix}") or ():
                yield {"kind": what, "role": role, **each}


def rows_by_group(frame: pl.DataFrame) -> dict[str, list[SimpleNamespace]]:
    """Return the rows of each group."""
    found: dict[str, list[SimpleNamespace]] = defaultdict(list)
    for row in frame.iter_rows(named=True):
        found[row["group_id"]].append(SimpleNamespace(**row))
    return found
