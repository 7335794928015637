"""What a record says of members besides what they are given, in the terms of `members`."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa
from pyspark.sql import functions as F
from pyspark.sql.pandas.types import from_arrow_schema

from analytics.replay.groups.columns import MEMBER_DETAILS
from analytics.replay.groups.group_records import (
    CLASSIC,
    CONSUMER,
    CONSUMER_PROTOCOL,
    SHARE,
    STREAMS,
)
from analytics.replay.log.stored_values import present, text

if TYPE_CHECKING:
    from pyspark.sql import Column

_NAMES = [field.name for field in MEMBER_DETAILS]
_TYPES = {
    field.name: field.dataType.simpleString()
    for field in from_arrow_schema(pa.schema(MEMBER_DETAILS))
}
DETAILS = f"array<struct<{','.join(f'{name}:{_TYPES[name]}' for name in _NAMES)}>>"


def details(family: str) -> Column:
    """Return the members that a value tells about, as `MEMBER_DETAILS`; null for a tombstone.

    Args:
        family: The type of group: of a classic one each value tells about all members, of the
            others the value of a member's metadata about that one, without its name.
    """
    value = F.col("value")
    if family == CLASSIC:
        return F.transform(value["members"], _of_classic)
    told: dict[str, Column] = {
        name: value[name] for name in ("client_id", "client_host", "rack_id")
    }
    if family == CONSUMER:
        told |= _of_consumer()
    elif family == SHARE:
        told["subscribed_topics"] = value["subscribed_topic_names"]
    elif family == STREAMS:
        told |= {
            "group_instance_id": value["instance_id"],
            "rebalance_timeout_ms": present(value["rebalance_timeout_ms"]),
            "process_id": value["process_id"],
            "topology_epoch": value["topology_epoch"],
        }
    return F.when(~F.col("is_tombstone"), F.array(_struct(told)))


def is_unread(member: Column) -> Column:
    """Return whether a member was given something that is not of the consumer protocol."""
    return (F.length(member["assignment"]) > 0) & member["assignment_decoded"].isNull()


def _of_consumer() -> dict[str, Column]:
    value = F.col("value")
    classic = value["classic_member_metadata"]
    return {
        "group_instance_id": value["instance_id"],
        "subscribed_topics": value["subscribed_topic_names"],
        "subscribed_regex": text(value["subscribed_topic_regex"]),
        "server_assignor": text(value["server_assignor"]),
        "rebalance_timeout_ms": present(value["rebalance_timeout_ms"]),
        "session_timeout_ms": present(classic["session_timeout_ms"]),
        "is_classic": classic.isNotNull(),
    }


def _of_classic(member: Column) -> Column:
    session = present(member["session_timeout"])
    subscription, assignment = member["subscription_decoded"], member["assignment_decoded"]
    names = ("member_id", "group_instance_id", "client_id", "client_host")
    return _struct(
        {name: member[name] for name in names}
        | {
            "rack_id": subscription["rack_id"],
            "subscribed_topics": subscription["topics"],
            "rebalance_timeout_ms": F.coalesce(present(member["rebalance_timeout"]), session),
            "session_timeout_ms": session,
            "is_classic": F.lit(col=True),
            "subscription_fields_written": subscription["fields_written"],
            "assignment_fields_written": assignment["fields_written"],
            "missing": _why_unread(text(F.col("value.protocol_type")), member),
        }
    )


def _why_unread(protocol_type: Column, member: Column) -> Column:
    """Return why nothing tells what a member was given; null where something does."""
    size = F.length(member["assignment"])
    return F.when(
        F.coalesce(protocol_type, F.lit("")) != CONSUMER_PROTOCOL,
        F.format_string(
            "the group is not a consumer group (%s): only its clients can read what they have",
            F.coalesce(protocol_type, F.lit("no protocol")),
        ),
    ).when(
        is_unread(member),
        F.format_string("the %d bytes of its assignment are not of the consumer protocol", size),
    )


def _struct(told: dict[str, Column]) -> Column:
    return F.struct(
        *(told.get(name, F.lit(None)).cast(type_).alias(name) for name, type_ in _TYPES.items())
    )
