"""Every record about a group but its offsets, with what it says: what the coordinator replays.

What a record says of its group is the same for every type once it is written down as items: a
member is there, subscribes to something, has or shall have partitions; what it says of members
besides is in the terms of the table `members`. A snapshot of a classic group holds the items of all
its members, the records of other groups those of one. Both the state
(`analytics.replay.groups.fold`) and the history, in which each record is a step, are made of it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import polars as pl
import pyarrow as pa

from analytics.replay.groups.columns import MEMBER_DETAILS
from analytics.replay.groups.group_records import (
    ASSIGNMENT_EPOCH,
    CLASSIC,
    CONSUMER,
    CONSUMER_PROTOCOL,
    CURRENT,
    GROUP,
    GROUP_KEY,
    KINDS,
    MEMBER,
    MEMBER_ROLES,
    SHARE,
    STREAMS,
    TOPOLOGY,
    Kind,
)
from analytics.replay.groups.record_items import (
    ABOUT,
    ITEM,
    ROW,
    about_member,
    listed,
    members_of_classic,
    record_items,
)
from analytics.replay.log.meanings import TIME, present, text
from analytics.replay.log.record_position import POSITION

if TYPE_CHECKING:
    from analytics.replay.log.as_of import Decoded

_DETAILS: Final = pl.Struct(pl.Schema(pa.schema(MEMBER_DETAILS)))
"""`MEMBER_DETAILS` as polars has it."""
VALUE_COLUMNS: Final = {
    "epoch": pl.Int32(),
    "member_state": pl.Int32(),
    "previous_epoch": pl.Int32(),
    "protocol": pl.String(),
    "leader": pl.String(),
    "protocol_type": pl.String(),
    "state_ms": pl.Int64(),
    "unread": pl.Int32(),
    "validated_epoch": pl.Int32(),
    "process_id": pl.String(),
    "members": pl.List(_DETAILS),
    "about": ABOUT,
    "items": pl.List(ITEM),
}
"""What a record may say; null where it does not."""
LOG: Final = pl.Schema(
    {
        GROUP_KEY[0]: pl.Int32(),
        GROUP_KEY[1]: pl.String(),
        "kind": pl.Int32(),
        "family": pl.String(),
        "role": pl.String(),
        "creates": pl.Boolean(),
        "record_type": pl.Int16(),
        "member_id": pl.String(),
        "offset": pl.Int64(),
        "timestamp": TIME,
        "batch": pl.Int64(),
        "batch_offset": pl.Int64(),
        "is_tombstone": pl.Boolean(),
        "position": pl.Struct(
            dict(zip(POSITION, (pl.Int32(), pl.String(), pl.String(), pl.Int64()), strict=True))
        ),
        **VALUE_COLUMNS,
    }
)


def coordinator_log(decoded: Decoded) -> pl.DataFrame:
    """Gather the records of all groups with what they say.

    Returns:
        `LOG`: `coordinator_partition`, `group_id`, `kind` (its place in `KINDS`), `family`, `role`,
        `creates`, `record_type`, `member_id`, `offset`, `timestamp`, `batch` (tells which records
        were written together), `batch_offset`, `is_tombstone`, `position` (a struct of `POSITION`)
        and the columns of `VALUE_COLUMNS`.
    """
    # Few dumps have records of all kinds.
    told = [
        _log_rows(decoded[name], number, kind)
        for number, (name, kind) in enumerate(KINDS.items())
        if decoded[name].height
    ]
    return pl.concat([LOG.to_frame(), *told], how="diagonal", rechunk=True)


def _is_unread() -> pl.Expr:
    """Return whether a member was given something that is not of the consumer protocol."""
    return (pl.col("assignment_bytes") > 0) & pl.col("assignment_decoded").is_null()


def _log_rows(records: pl.DataFrame, number: int, kind: Kind) -> pl.DataFrame:
    records = records.with_row_index(ROW)
    key = pl.col("key").struct
    told = records.select(
        ROW,
        pl.col("partition").alias(GROUP_KEY[0]),
        key.field(kind.group_field).alias(GROUP_KEY[1]),
        pl.lit(number, pl.Int32()).alias("kind"),
        pl.lit(kind.family).alias("family"),
        pl.lit(kind.role).alias("role"),
        pl.lit(kind.creates).alias("creates"),
        "record_type",
        "offset",
        "timestamp",
        # Archived rows do not name their batch; what was written together has one time.
        pl.coalesce("batch_offset", -pl.col("timestamp").dt.epoch("us"), "offset").alias("batch"),
        "batch_offset",
        "is_tombstone",
        pl.struct(POSITION).alias("position"),
        *(each.cast(LOG[name]).alias(name) for name, each in _values_of(kind).items()),
    )
    return _with_lists(told, records, kind).drop(ROW)


def _values_of(kind: Kind) -> dict[str, pl.Expr]:
    """Return what records of a kind say besides lists."""
    value, key = pl.col("value").struct, pl.col("key").struct
    said = {"member_id": key.field("member_id")} if kind.role in MEMBER_ROLES else {}
    epochs = {
        GROUP: "generation" if kind.family == CLASSIC else "epoch",
        ASSIGNMENT_EPOCH: "assignment_epoch",
        TOPOLOGY: "epoch",
        CURRENT: "member_epoch",
    }
    if kind.role in epochs:
        said["epoch"] = value.field(epochs[kind.role])
    if kind.role == GROUP and kind.family == CLASSIC:
        said |= {name: text(value.field(name)) for name in ("protocol", "leader", "protocol_type")}
        said["state_ms"] = value.field("current_state_timestamp")
    elif kind.role == GROUP and kind.family == STREAMS:
        said["validated_epoch"] = value.field("validated_topology_epoch")
    elif kind.role == CURRENT:
        said["previous_epoch"] = value.field("previous_member_epoch")
        said["member_state"] = value.field("state")
    elif kind.role == MEMBER:
        said["about"] = about_member(kind)
        if kind.family == STREAMS:
            said["process_id"] = value.field("process_id")
    return said


def _with_lists(rows: pl.DataFrame, records: pl.DataFrame, kind: Kind) -> pl.DataFrame:
    """Add to records what they list: nothing where they hold nothing, null where they cannot."""
    if kind.family == CLASSIC:
        holds = pl.col("value").struct.field("members").is_not_null()
        members = members_of_classic(records)
        unread = members.group_by(ROW).agg(
            _is_unread().sum().cast(VALUE_COLUMNS["unread"]).alias("unread")
        )
        held = {"members": _details(records, members, kind), "unread": unread}
    elif kind.role in MEMBER_ROLES:
        holds, members, held = ~pl.col("is_tombstone"), pl.DataFrame(), {}
        if kind.role == MEMBER:
            held["members"] = _details(records, members, kind)
    else:
        return rows
    held["items"] = record_items(records, members, kind)
    there = records.select(holds.alias("holds")).to_series()
    for name, each in held.items():
        nothing = pl.lit(0 if name == "unread" else [], dtype=VALUE_COLUMNS[name])
        rows = rows.join(each, ROW, "left", maintain_order="left").with_columns(
            pl.when(there).then(pl.col(name).fill_null(nothing))
        )
    return rows


def _details(records: pl.DataFrame, members: pl.DataFrame, kind: Kind) -> pl.DataFrame:
    """Return the members that values tell about: `ROW` and `members`, a list of `_DETAILS`.

    Args:
        records: `ROW`, `is_tombstone` and `value`: of a classic group each value tells about all
            members, of the others the value of a member's metadata about that one, without its
            name.
        members: Of records of classic groups `members_of_classic`, else not looked at.
        kind: What the records say.
    """
    if kind.family == CLASSIC:
        told = members.select(ROW, **_of_classic())
    else:
        told = records.filter(~pl.col("is_tombstone")).select(ROW, **_of_one(kind.family))
    return listed([told], _DETAILS, "members")


def _of_one(family: str) -> dict[str, pl.Expr]:
    value = pl.col("value").struct
    told = {name: value.field(name) for name in ("client_id", "client_host", "rack_id")}
    if family == CONSUMER:
        classic = value.field("classic_member_metadata")
        told |= {
            "group_instance_id": value.field("instance_id"),
            "subscribed_topics": value.field("subscribed_topic_names"),
            "subscribed_regex": text(value.field("subscribed_topic_regex")),
            "server_assignor": text(value.field("server_assignor")),
            "rebalance_timeout_ms": present(value.field("rebalance_timeout_ms")),
            "session_timeout_ms": present(classic.struct.field("session_timeout_ms")),
            "is_classic": classic.is_not_null(),
        }
    elif family == SHARE:
        told["subscribed_topics"] = value.field("subscribed_topic_names")
    elif family == STREAMS:
        told |= {
            "group_instance_id": value.field("instance_id"),
            "rebalance_timeout_ms": present(value.field("rebalance_timeout_ms")),
            "process_id": value.field("process_id"),
            "topology_epoch": value.field("topology_epoch"),
        }
    return told


def _of_classic() -> dict[str, pl.Expr]:
    session = present(pl.col("session_timeout"))
    subscription = pl.col("subscription_decoded").struct
    assignment = pl.col("assignment_decoded").struct
    names = ("member_id", "group_instance_id", "client_id", "client_host")
    return {name: pl.col(name) for name in names} | {
        "rack_id": subscription.field("rack_id"),
        "subscribed_topics": subscription.field("topics"),
        "rebalance_timeout_ms": pl.coalesce(present(pl.col("rebalance_timeout")), session),
        "session_timeout_ms": session,
        "is_classic": pl.lit(value=True),
        "subscription_fields_written": subscription.field("fields_written"),
        "assignment_fields_written": assignment.field("fields_written"),
        "missing": _why_unread(),
    }


def _why_unread() -> pl.Expr:
    """Return why nothing tells what a member was given; null where something does."""
    protocol = pl.col("protocol_type")
    foreign = pl.format(
        "the group is not a consumer group ({}): only its clients can read what they have",
        protocol.fill_null("no protocol"),
    )
    unread = pl.format(
        "the {} bytes of its assignment are not of the consumer protocol", "assignment_bytes"
    )
    is_foreign = protocol.ne_missing(pl.lit(CONSUMER_PROTOCOL))
    return pl.when(is_foreign).then(foreign).when(_is_unread()).then(unread)
