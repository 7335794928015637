"""How a group moves: what its commits advanced, when last, and how often they changed nothing.

A fold over the commits in the order of the log; what is kept is a row for each partition of each
group.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final

import pyarrow as pa
import pyarrow.compute as pc

from analytics.evaluate.lag.read_partitions import KEY

COLUMNS: Final = (*KEY, "event", "advance", "effective_timestamp")
"""The columns of `offset_history` that are read."""

_ZERO: Final = pa.scalar(0, pa.int64())
_MOST_ROWS: Final = 1 << 20
"""Rows that wait to be summed: what is kept is a row a partition of a group."""
_AGGREGATES: Final = (
    ("commits", "sum"),
    ("unchanged_commits", "sum"),
    ("rewinds", "sum"),
    ("advanced", "sum"),
    ("first_commit_at", "min"),
    ("last_commit_at", "max"),
    ("last_advance_at", "max"),
)


@dataclass
class ProgressFold:
    """How each partition of each group moved in the history that was seen."""

    _found: list[pa.Table] = field(default_factory=list)

    def add(self, commits: pa.Table) -> None:
        """Take rows of `offset_history`."""
        self._found.append(_summed(_measured(commits)))
        if sum(rows.num_rows for rows in self._found) > _MOST_ROWS:
            self._found = [_summed(pa.concat_tables(self._found))]

    def progress(self) -> pa.Table:
        """Return what was seen of each partition.

        Returns:
            `group_id`, `topic`, `partition`; `commits`, `unchanged_commits` (of the offset that was
            in force already), `rewinds`, `advanced` (records forward, steps back left out),
            `first_commit_at`, `last_commit_at`, `last_advance_at` (null where none advanced).
        """
        return _summed(pa.concat_tables([*self._found, _summed(_measured(_NO_COMMITS))]))


def _measured(commits: pa.Table) -> pa.Table:
    """Return what each commit counts for; deletions and aborts are none."""
    made = commits.filter(pc.is_in(commits["event"], pa.array(["commit", "transaction_commit"])))
    advance, at = made["advance"], made["effective_timestamp"]
    is_forward = pc.fill_null(pc.greater(advance, _ZERO), fill_value=False)
    never = pa.scalar(None, at.type)
    return pa.table(
        {
            **{name: made[name] for name in KEY},
            "commits": pa.repeat(pa.scalar(1, pa.int64()), made.num_rows),
            "unchanged_commits": _counted(pc.equal(advance, _ZERO)),
            "rewinds": _counted(pc.less(advance, _ZERO)),
            "advanced": pc.if_else(is_forward, advance, _ZERO),
            "first_commit_at": at,
            "last_commit_at": at,
            "last_advance_at": pc.if_else(is_forward, at, never),
        }
    )


def _counted(flags: pa.ChunkedArray) -> pa.ChunkedArray:
    return pc.cast(pc.fill_null(flags, fill_value=False), pa.int64())


def _summed(rows: pa.Table) -> pa.Table:
    found = rows.group_by(list(KEY)).aggregate(list(_AGGREGATES))
    names = [*KEY, *(name for name, _ in _AGGREGATES)]
    return found.select([*KEY, *(f"{name}_{how}" for name, how in _AGGREGATES)]).rename_columns(
        names
    )


_NO_COMMITS = pa.schema(
    [
        ("group_id", pa.string()),
        ("topic", pa.string()),
        ("partition", pa.int32()),
        ("event", pa.string()),
        ("advance", pa.int64()),
        ("effective_timestamp", pa.timestamp("us", tz="UTC")),
    ]
).empty_table()
