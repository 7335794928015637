"""Every record about a group but its offsets, with what it says: what the coordinator replays.

What a record says of its group is the same for every type once it is written down as items: a
member is there, subscribes to something, has or shall have partitions. A snapshot of a classic
group holds the items of all its members, the records of other groups those of one. Both the state
(`analytics.replay.groups.fold`) and the history, in which each record is a step, are made of it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark.sql import functions as F

from analytics.replay.graph import TableStep
from analytics.replay.groups.group_records import (
    ASSIGNMENT_EPOCH,
    CLASSIC,
    CONSUMER,
    CURRENT,
    GROUP,
    KINDS,
    MEMBER,
    MEMBER_ROLES,
    STREAMS,
    TARGET,
    TOPOLOGY,
    Kind,
)
from analytics.replay.groups.item_kinds import ASSIGNOR, PENDING, PRESENCE, SUBSCRIPTION
from analytics.replay.groups.member_details import DETAILS, details, is_unread
from analytics.replay.log.as_of import Decoded
from analytics.replay.log.record_position import POSITION
from analytics.replay.log.stored_values import text
from analytics.replay.union import union_all

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

NO_PARTITION = -1
ROLES = ("active", "standby", "warmup")
ABOUT = "struct<group_instance_id:string,client_id:string,client_host:string>"
ITEMS = (
    "array<struct<member_id:string,kind:string,role:string,subtopology_id:string,topic:string,"
    f"topic_id:string,partitions:array<int>,about:{ABOUT}>>"
)
SAID = {
    "epoch": "int",
    "member_state": "int",
    "previous_epoch": "int",
    "protocol": "string",
    "leader": "string",
    "protocol_type": "string",
    "state_ms": "bigint",
    "unread": "int",
    "validated_epoch": "int",
    "members": DETAILS,
    "about": ABOUT,
    "items": ITEMS,
}
"""What a record may say; null where it does not."""


def coordinator_log(decoded: Decoded) -> DataFrame:
    """Gather the records of all groups with what they say.

    Returns:
        `coordinator_partition`, `group_id`, `kind` (int: its place in `KINDS`), `family`, `role`,
        `creates`, `record_type`,
        `member_id`, `offset`, `timestamp`, `batch` (tells which records were written together),
        `batch_offset`, `is_tombstone`, `position` (a struct of `POSITION`) and the columns of
        `SAID`.
    """
    return union_all(
        _told(decoded[name], number, kind) for number, (name, kind) in enumerate(KINDS.items())
    )


def _kept(decoded: Decoded) -> DataFrame:
    return coordinator_log(decoded).localCheckpoint()


COORDINATOR_LOG = TableStep("coordinator_log", _kept, ("cut",))
"""What both the state and the history of groups are made of."""


def _told(records: DataFrame, number: int, kind: Kind) -> DataFrame:
    said = _said(kind)
    group = "key.group" if kind.family == CLASSIC else "key.group_id"
    member = F.col("key.member_id") if kind.role in MEMBER_ROLES else F.lit(None)
    return records.select(
        F.col("partition").alias("coordinator_partition"),
        F.col(group).alias("group_id"),
        F.lit(number).alias("kind"),
        F.lit(kind.family).alias("family"),
        F.lit(kind.role).alias("role"),
        F.lit(kind.creates).alias("creates"),
        "record_type",
        member.cast("string").alias("member_id"),
        "offset",
        "timestamp",
        # Archived rows do not name their batch; what was written together has one time.
        F.coalesce("batch_offset", -F.unix_micros("timestamp"), "offset").alias("batch"),
        "batch_offset",
        "is_tombstone",
        F.struct(*POSITION).alias("position"),
        *(said.get(name, F.lit(None)).cast(type_).alias(name) for name, type_ in SAID.items()),
    )


def _said(kind: Kind) -> dict[str, Column]:
    value = F.col("value")
    if kind.role == GROUP:
        return _classic_group() if kind.family == CLASSIC else _group(kind)
    if kind.role == MEMBER:
        return _member(kind)
    if kind.role == CURRENT:
        return {
            "epoch": value["member_epoch"],
            "previous_epoch": value["previous_member_epoch"],
            "member_state": value["state"],
            "items": _when_valued(F.concat(F.array(_there()), *_current(kind))),
        }
    if kind.role == TARGET:
        return {"items": _when_valued(F.concat(*_target(kind)))}
    numbers = {ASSIGNMENT_EPOCH: "assignment_epoch", TOPOLOGY: "epoch"}
    return {"epoch": value[numbers[kind.role]]} if kind.role in numbers else {}


def _classic_group() -> dict[str, Column]:
    value = F.col("value")
    return {
        "epoch": value["generation"],
        "protocol": text(value["protocol"]),
        "leader": text(value["leader"]),
        "protocol_type": text(value["protocol_type"]),
        "state_ms": value["current_state_timestamp"],
        "members": details(CLASSIC),
        "unread": F.size(F.filter(value["members"], is_unread)),
        "items": F.flatten(F.transform(value["members"], _classic_items)),
    }


def _group(kind: Kind) -> dict[str, Column]:
    value = F.col("value")
    said = {"epoch": value["epoch"]}
    if kind.family == STREAMS:
        said["validated_epoch"] = value["validated_topology_epoch"]
    return said


def _member(kind: Kind) -> dict[str, Column]:
    value = F.col("value")
    if kind.family == STREAMS:
        names, regex, instance = F.lit(None), F.lit(""), value["instance_id"]
    else:
        names, regex = value["subscribed_topic_names"], F.lit("")
        instance = F.lit(None)
        if "consumer" in kind.family:
            regex, instance = value["subscribed_topic_regex"], value["instance_id"]
    about = F.struct(
        instance.cast("string").alias("group_instance_id"),
        value["client_id"].alias("client_id"),
        value["client_host"].alias("client_host"),
    )
    subscribed = _subscribed(F.lit(None).cast("string"), names, regex, F.lit(None).cast(ABOUT))
    return {
        "about": F.when(~F.col("is_tombstone"), about),
        "members": details(kind.family),
        "items": _when_valued(F.array(_there(), subscribed, *_named(kind))),
    }


def _classic_items(member: Column) -> Column:
    """Return the items of one member in a snapshot of a classic group."""
    who = member["member_id"]
    about = F.struct(
        member["group_instance_id"].alias("group_instance_id"),
        member["client_id"].alias("client_id"),
        member["client_host"].alias("client_host"),
    )
    topics = member["subscription_decoded"]["topics"]
    given = F.transform(
        F.coalesce(
            member["assignment_decoded"]["assigned_partitions"],
            F.array().cast("array<struct<topic:string,partitions:array<int>>>"),
        ),
        lambda each: _item(
            CURRENT, each["partitions"], member_id=who, topic=each["topic"], about=about
        ),
    )
    return F.concat(
        F.array(
            _item(PRESENCE, F.array(F.lit(NO_PARTITION)), member_id=who, about=about),
            _subscribed(who, topics, F.lit(""), about),
        ),
        given,
    )


def _there() -> Column:
    return _item(PRESENCE, F.array(F.lit(NO_PARTITION)))


def _subscribed(who: Column, topics: Column, regex: Column, about: Column) -> Column:
    """Return a subscription as an item: its words stand where a topic's name does."""
    names = F.coalesce(topics.cast("array<string>"), F.array().cast("array<string>"))
    words = F.concat_ws(" ", F.concat_ws(",", F.array_sort(names)), F.coalesce(regex, F.lit("")))
    return _item(
        SUBSCRIPTION, F.array(F.lit(NO_PARTITION)), member_id=who, topic=words, about=about
    )


def _named(kind: Kind) -> list[Column]:
    """Return the assignor that a member of a consumer group names, or none, as an item."""
    if kind.family != CONSUMER:
        return []
    name = text(F.col("value.server_assignor"))
    nowhere = F.array().cast("array<int>")
    partitions = F.when(name.isNull(), nowhere).otherwise(F.array(F.lit(NO_PARTITION)))
    return [_item(ASSIGNOR, partitions, topic=name)]


def _current(kind: Kind) -> list[Column]:
    if kind.family == STREAMS:
        return [
            *_tasks(CURRENT, "_tasks"),
            *_tasks(PENDING, "_tasks_pending_revocation"),
        ]
    lists = [_partitions(CURRENT, F.col("value.assigned_partitions"))]
    if kind.family == "consumer":
        lists.append(_partitions(PENDING, F.col("value.partitions_pending_revocation")))
    return lists


def _target(kind: Kind) -> list[Column]:
    if kind.family == STREAMS:
        return _tasks(TARGET, "_tasks")
    return [_partitions(TARGET, F.col("value.topic_partitions"))]


def _partitions(kind: str, topics: Column) -> Column:
    items = F.transform(
        topics, lambda each: _item(kind, each["partitions"], topic_id=each["topic_id"])
    )
    return F.coalesce(items, F.array().cast(ITEMS))


def _tasks(kind: str, suffix: str) -> list[Column]:
    return [_tasks_in_role(kind, role, F.col(f"value.{role}{suffix}")) for role in ROLES]


def _tasks_in_role(kind: str, role: str, tasks: Column) -> Column:
    items = F.transform(
        tasks,
        lambda each: _item(
            kind, each["partitions"], role=role, subtopology_id=each["subtopology_id"]
        ),
    )
    return F.coalesce(items, F.array().cast(ITEMS))


def _item(
    kind: str, partitions: Column, about: Column | None = None, **which: Column | str
) -> Column:
    names = ("role", "subtopology_id", "topic", "topic_id")
    given = {name: F.lit(each) if isinstance(each, str) else each for name, each in which.items()}
    nothing = F.lit(None).cast("string")
    return F.struct(
        given.get("member_id", nothing).alias("member_id"),
        F.lit(kind).alias("kind"),
        *(given.get(name, nothing).cast("string").alias(name) for name in names),
        partitions.alias("partitions"),
        (F.lit(None).cast(ABOUT) if about is None else about).alias("about"),
    )


def _when_valued(items: Column) -> Column:
    return F.when(~F.col("is_tombstone"), items)
