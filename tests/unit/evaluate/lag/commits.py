"""Commits as rows of `offset_history`."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from datetime import datetime, timedelta

import pyarrow as pa

from analytics.evaluate.lag.burrow_status import StatusFold

UTC_TIME = pa.timestamp("us", "UTC")


def commits_of(commits: list[tuple[int, int | None, int, int]], epoch: datetime) -> pa.Table:
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
    return pa.Table.from_pylist(
        rows,
        pa.schema(
            [
                ("group_id", pa.string()),
                ("topic", pa.string()),
                ("partition", pa.int32()),
                ("event", pa.string()),
                ("committed_offset", pa.int64()),
                ("commit_timestamp", UTC_TIME),
                ("effective_timestamp", UTC_TIME),
            ]
        ),
    )


def folded(commits: Iterable[pa.Table], fold: StatusFold, until_ms: int) -> Iterator[pa.Table]:
    """Yield the changes of status of all commits, and then those up to a time."""
    for each in commits:
        yield fold.add(each)
    yield fold.finish(until_ms)
