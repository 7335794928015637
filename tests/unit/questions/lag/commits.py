"""Commits as rows of `offset_history`."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

import polars as pl
import pyarrow as pa

UTC_TIME = pa.timestamp("us", "UTC")
EPOCH = datetime(2026, 1, 1, tzinfo=UTC)
HISTORY = pa.schema(
    [
        *((name, pa.string()) for name in ("group_id", "topic", "event", "member_id", "origin")),
        *((name, pa.string()) for name in ("topic_id", "cause")),
        ("complete", pa.bool_()),
        *((name, pa.int32()) for name in ("partition", "epoch")),
        *((name, pa.int64()) for name in ("committed_offset", "previous_offset", "advance")),
        ("coordinator_partition", pa.int32()),
        ("effective_offset", pa.int64()),
        ("commit_timestamp", UTC_TIME),
        ("effective_timestamp", UTC_TIME),
    ]
)
"""The columns of `offset_history` that are read."""


NO_HISTORY = pl.DataFrame(HISTORY.empty_table())


def commits_of(commits: list[tuple[int, int | None, int, int]], epoch: datetime) -> pl.DataFrame:
    """Return commits of one group and topic.

    Args:
        commits: Partition, offset (None: removed), the client's time and the log's, both in
            milliseconds since the epoch.
        epoch: When times begin.
    """

    def at(ms: int) -> datetime:
        return epoch + timedelta(milliseconds=ms)

    rows = [
        {
            "group_id": "g",
            "topic": "t",
            "partition": partition,
            "event": "delete" if offset is None else "commit",
            "committed_offset": offset,
            "commit_timestamp": None if offset is None else at(client_ms),
            "effective_timestamp": at(log_ms),
        }
        for partition, offset, client_ms, log_ms in commits
    ]
    return pl.DataFrame(pa.Table.from_pylist(rows, HISTORY))


def at(ms: int) -> datetime:
    return EPOCH + timedelta(milliseconds=ms)


def history(rows: Sequence[dict[str, Any]]) -> pl.DataFrame:
    """Return rows of `offset_history`; what a commit advances by follows from the ones before."""
    in_force: dict[tuple[str, str, int], int] = {}
    told = []
    for number, given_row in enumerate(rows):
        row = {"group_id": "g", "topic": "t", "partition": 0, "event": "commit", **given_row}
        key = row["group_id"], row["topic"], row["partition"]
        before = in_force.get(key)
        offset = row["committed_offset"]
        row["previous_offset"] = before
        row["advance"] = None if before is None or offset is None else offset - before
        row.setdefault("effective_timestamp", at(number))
        row.setdefault("origin", "member")
        row.setdefault("complete", True)
        if row["event"] != "transaction_abort" and offset is not None:
            in_force[key] = offset
        told.append(row)
    return pl.DataFrame(pa.Table.from_pylist(told, HISTORY))
