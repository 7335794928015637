"""Changes of committed offsets as the table `offset_history` has them, made by hand."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

import pyarrow as pa

from analytics.questions.timeline.history import OffsetHistory

NOON = datetime(2026, 11, 21, 12, tzinfo=UTC)
PLACE = ("billing", "orders", 0)
HOME = 17
"""The partition of the offsets topic that the group belongs to."""

_SCHEMA = pa.schema(
    [
        *((name, pa.string()) for name in ("group_id", "topic", "topic_id", "event", "member_id")),
        *((name, pa.string()) for name in ("cause", "confidence", "origin", "missing")),
        *((name, pa.int32()) for name in ("partition", "epoch", "coordinator_partition")),
        ("group_members", pa.int32()),
        *((name, pa.int64()) for name in ("committed_offset", "previous_offset", "advance")),
        *((name, pa.int64()) for name in ("effective_offset", "record_offset")),
        ("effective_timestamp", pa.timestamp("us", "UTC")),
        ("commit_timestamp", pa.timestamp("us", "UTC")),
        ("complete", pa.bool_()),
    ]
)


def minute(after_noon: int) -> datetime:
    return NOON + timedelta(minutes=after_noon)


def change(at: int, offset: int | None, **more: Any) -> dict[str, Any]:
    """Return a change by the record at an offset, which was written as many minutes after noon.

    Args:
        at: Offset of the record in the internal partition.
        offset: What was committed; None for a deletion.
        **more: Other columns; `previous` is `previous_offset`, and `advance` follows from it.
    """
    previous = more.pop("previous", None)
    row = {
        **dict(zip(("group_id", "topic", "partition"), PLACE, strict=True)),
        "event": "delete" if offset is None else "commit",
        "committed_offset": offset,
        "previous_offset": previous,
        "advance": None if None in (offset, previous) else offset - previous,
        "effective_offset": at,
        "record_offset": at,
        "effective_timestamp": minute(at),
        "commit_timestamp": minute(at),
        "coordinator_partition": HOME,
        "complete": True,
    }
    return row | more


def history(*changes: dict[str, Any]) -> OffsetHistory:
    """Return the history that these changes make."""
    return OffsetHistory(pa.Table.from_pylist(list(changes), _SCHEMA))


def in_force(changes: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return what `committed_offsets` has after these changes."""
    return history(*changes).last_in_force()
