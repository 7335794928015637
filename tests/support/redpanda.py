"""Rows as Redpanda writes them into `__consumer_offsets`, from the description of its source."""

from __future__ import annotations

import struct
from typing import Any

from schemas import record_type
from schemas.catalog import REDPANDA, dialect_types
from tests.support.encoder import encode_key, encode_value
from tests.support.segments import NOW, Record

GROUPS, COMMITS = record_type("group_metadata"), record_type("offset_commit")
GROUP: dict[str, Any] = {
    "protocol_type": "consumer",
    "generation": 4,
    "protocol": "range",
    "leader": "m-1",
    "current_state_timestamp": NOW,
    "members": [],
}


def group_key(group: str) -> bytes:
    """The key of a group: the same in Kafka."""
    return encode_key(GROUPS, 2, {"group": group})


def commit_key(group: str, topic: str = "orders", partition: int = 0) -> bytes:
    """The key of a committed offset: the same in Kafka."""
    return encode_key(COMMITS, 1, {"group": group, "topic": topic, "partition": partition})


def member(number: int, **more: Any) -> dict[str, Any]:
    """A member with some subscription."""
    return {
        "member_id": f"m-{number}",
        "group_instance_id": None,
        "client_id": "app",
        "client_host": "10.0.0.7",
        "rebalance_timeout": 300_000,
        "session_timeout": 45_000,
        "subscription": b"\0\1\0\0\0\1\0\6orders\xff\xff\xff\xff\0\0\0\0",
        "assignment": b"",
        **more,
    }


def group_of_redpanda(offset: int, group: str, members: int, version: int = 3) -> Record:
    """A group with so many members, a version before each."""
    kind = dialect_types(REDPANDA)["redpanda_group_metadata"]
    rows = [member(number, member_version=version) for number in range(1, members + 1)]
    return Record(
        offset, NOW, group_key(group), encode_value(kind, version, {**GROUP, "members": rows})
    )


def group_of_kafka(offset: int, group: str, members: int, version: int = 3) -> Record:
    """The same as Kafka writes it."""
    rows = [member(number) for number in range(1, members + 1)]
    return Record(
        offset, NOW, group_key(group), encode_value(GROUPS, version, {**GROUP, "members": rows})
    )


def tombstone_behind_length(offset: int, key: bytes) -> Record:
    """A tombstone of which the key has four bytes before it, the lowest of its length first."""
    return Record(offset, NOW, struct.pack("<i", len(key)) + key, None)


def commit_of_either(offset: int, group: str) -> Record:
    """A committed offset: Redpanda's and Kafka's are the same."""
    value = {"offset": 7, "leader_epoch": -1, "metadata": "", "commit_timestamp": NOW}
    return Record(offset, NOW, commit_key(group), encode_value(COMMITS, 3, value))
