"""Changes of committed offsets as the table `offset_history` has them, made by hand."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from types import MappingProxyType
from typing import Any

import polars as pl

from analytics.questions.timeline.history import OffsetHistory
from analytics.questions.timeline.verdicts import (
    COMMITTED,
    GROUPS,
    LOG_STARTS,
    WAITING,
    GroupRows,
    VerdictEvidence,
    in_order,
    verdicts,
)
from analytics.questions.timeline.words import PLACE as PLACES

NOON = datetime(2026, 11, 21, 12, tzinfo=UTC)
PLACE = ("billing", "orders", 0)
HOME = 17
"""The partition of the offsets topic that the group belongs to."""

_TIME = pl.Datetime("us", "UTC")
_SCHEMA = pl.Schema(
    {
        **dict.fromkeys(("group_id", "topic", "topic_id", "event", "member_id"), pl.String()),
        **dict.fromkeys(("cause", "confidence", "origin", "missing"), pl.String()),
        **dict.fromkeys(("partition", "epoch", "coordinator_partition"), pl.Int32()),
        "group_members": pl.Int32(),
        **dict.fromkeys(("committed_offset", "stored_offset", "previous_offset"), pl.Int64()),
        **dict.fromkeys(("advance", "effective_offset", "record_offset"), pl.Int64()),
        "producer_id": pl.Int64(),
        "effective_timestamp": _TIME,
        "commit_timestamp": _TIME,
        "complete": pl.Boolean(),
    }
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


def frame(rows: Iterable[dict[str, Any]]) -> pl.DataFrame:
    """Return changes, commits in force or pending ones as their tables have them."""
    return pl.DataFrame(list(rows), _SCHEMA)


def history(*changes: dict[str, Any]) -> OffsetHistory:
    """Return the history that these changes make."""
    return OffsetHistory(frame(changes))


def in_force(changes: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return what `committed_offsets` has after these changes."""
    return history(*changes).in_force.to_dicts()


def verdicts_of(
    changes: Sequence[dict[str, Any]],
    committed: Iterable[dict[str, Any]],
    *,
    pending: Iterable[dict[str, Any]] = (),
    given: Iterable[tuple[str, str, int]] = (),
    groups: Mapping[str, int] = MappingProxyType({}),
    gaps: Mapping[str, str] = MappingProxyType({}),
    log_starts: Mapping[tuple[str, int], int] = MappingProxyType({}),
    **known: Any,
) -> list[dict[str, Any]]:
    """Return the verdicts on offsets, the worst first.

    Args:
        changes: The history.
        committed: What is in force.
        pending: What transactions hold.
        given: Places of members.
        groups: Which groups are asked about, and their homes.
        gaps: Why their histories have gaps.
        log_starts: Where logs begin.
        **known: Of `VerdictEvidence`.
    """
    starts = [(*place, offset) for place, offset in log_starts.items()]
    rows = GroupRows(
        history=history(*changes),
        committed=frame(_with_marks(committed)).select(COMMITTED),
        pending=frame(pending).select(WAITING),
        given=pl.DataFrame(list(given), {name: _SCHEMA[name] for name in PLACES}, orient="row"),
        groups=pl.DataFrame(
            [(group, home, gaps.get(group)) for group, home in groups.items()], GROUPS, orient="row"
        ),
    )
    logs = pl.DataFrame(starts, LOG_STARTS, orient="row")
    return in_order(verdicts(VerdictEvidence(log_starts=logs, **known), rows)).to_dicts()


def _with_marks(rows: Iterable[dict[str, Any]]) -> list[dict[str, Any]]:
    return [{"complete": True, **row} for row in rows]
