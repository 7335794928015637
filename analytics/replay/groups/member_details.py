"""What a record says of members besides what they are given, in the terms of `members`."""

from __future__ import annotations

from typing import Final

import polars as pl
import pyarrow as pa

from analytics.replay.groups.columns import MEMBER_DETAILS
from analytics.replay.groups.group_records import (
    CLASSIC,
    CONSUMER,
    CONSUMER_PROTOCOL,
    SHARE,
    STREAMS,
    Kind,
)
from analytics.replay.groups.record_items import ROW, listed
from analytics.replay.log.meanings import present, text

DETAILS: Final = pl.Struct(pl.Schema(pa.schema(MEMBER_DETAILS)))
"""`MEMBER_DETAILS` as polars has it."""


def details(records: pl.DataFrame, members: pl.DataFrame, kind: Kind) -> pl.DataFrame:
    """Return the members that values tell about: `ROW` and `members`, a list of `DETAILS`.

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
    return listed([told], DETAILS, "members")


def is_unread() -> pl.Expr:
    """Return whether a member was given something that is not of the consumer protocol."""
    return (pl.col("assignment_bytes") > 0) & pl.col("assignment_decoded").is_null()


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
    return pl.when(is_foreign).then(foreign).when(is_unread()).then(unread)
