"""What the `snapshot.json` of a snapshot says, as types."""

from __future__ import annotations

from schemas.snapshot.document import (
    SNAPSHOT_VERSION,
    Broker,
    ListedGroup,
    Log,
    Partition,
    Setting,
    Snapshot,
    Topic,
    Unread,
    read_snapshot,
)

__all__ = [
    "SNAPSHOT_VERSION",
    "Broker",
    "ListedGroup",
    "Log",
    "Partition",
    "Setting",
    "Snapshot",
    "Topic",
    "Unread",
    "read_snapshot",
]
