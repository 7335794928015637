"""How far behind groups were on a topic over time: where its logs ended at several instants.

Nothing is interpolated: a point is an end that is known, and the offset that was in force then.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

import polars as pl
import pyarrow as pa

from reports.charts.groups import lags_over_time
from reports.page.model import Figure
from reports.page.rows import at, doubt_said, figure, harmless, labels, topic_anchor
from reports.page.workspace_tables import WorkspaceTables, is_of
from reports.plain_text import count

_SAMPLES: Final = "log_end_samples"
_HISTORY: Final = "offset_history"
_MOST_LINES: Final = 5
_PAIR: Final = ["group_id", "partition"]
_MARKS: Final = ("complete", "missing")
_TIME: Final = pl.Datetime("us", "UTC")
_ANCHOR: Final = "-lags"


def is_of_lags(drawn: Figure) -> bool:
    """Return whether a figure is one of lags over time."""
    return drawn.anchor.endswith(_ANCHOR)


def lags_of_topic(read: WorkspaceTables, topic: str, lags: pa.Table | None) -> Iterator[Figure]:
    """Yield a chart of the partitions that groups are furthest behind on; none of one instant.

    Args:
        read: `log_end_samples`, and `offset_history` of the groups that the page shows.
        topic: Whose.
        lags: Its rows of `lag`, the largest lag first: `group_id`, `partition`.
    """
    if lags is None or not read.has(_SAMPLES) or not read.has(_HISTORY):
        return
    pairs = _frame(lags.select(_PAIR)).head(_MOST_LINES)
    is_there = (pl.col("topic") == topic) & is_of(pairs["group_id"].to_list())
    columns = [*_PAIR, "topic", "effective_timestamp", "committed_offset", *_MARKS]
    rows = read.rows(_HISTORY, columns, is_there)
    ends = _frame(
        read.rows(
            _SAMPLES, ["topic", "partition", "at", "log_end_offset"], pl.col("topic") == topic
        )
    )
    points = _points(pairs, ends, _frame(rows))
    several = points.filter(pl.len().over(_PAIR) > 1)
    if several.is_empty():
        return
    names = labels(f"{group}, partition {number}" for group, number in several[_PAIR].iter_rows())
    lines = [
        {
            "group": harmless(names[f"{row['group_id']}, partition {row['partition']}"]),
            "at": at(row["at"]),
            "lag": row["lag"],
        }
        for row in several.iter_rows(named=True)
    ]
    most = max(lines, key=lambda each: int(each["lag"]))
    says = (
        f"{most['group']} was furthest behind: {count(most['lag'], 'record')} at {most['at']}."
        f"{doubt_said(rows)}"
    )
    yield from figure(
        f"{topic_anchor(topic)}{_ANCHOR}",
        "How far behind groups were, where the end of the log is known (UTC)",
        says,
        lines,
        lags_over_time,
    )


def _frame(rows: pa.Table) -> pl.DataFrame:
    found = pl.DataFrame(pl.from_arrow(rows))
    kinds: dict[str, Any] = {
        "group_id": pl.String,
        "topic": pl.String,
        "partition": pl.Int32,
        "effective_timestamp": _TIME,
        "at": _TIME,
    }
    return found.cast({name: kind for name, kind in kinds.items() if name in found.columns})


def _points(pairs: pl.DataFrame, ends: pl.DataFrame, history: pl.DataFrame) -> pl.DataFrame:
    """Return `_PAIR`, `at` and `lag` of each known end, by pair and time.

    An offset that was removed is in force no more, and a commit beyond a known end shows only that
    the log had grown since.
    """
    changes = history.filter(pl.col("effective_timestamp").is_not_null()).sort(
        "effective_timestamp", maintain_order=True
    )
    asked = pairs.join(ends, on="partition").sort("at")
    known = asked.join_asof(
        changes.select(*_PAIR, "effective_timestamp", "committed_offset"),
        left_on="at",
        right_on="effective_timestamp",
        by=_PAIR,
        strategy="backward",
        # Both are in order of time; polars cannot see that of groups.
        check_sortedness=False,
    )
    lag = pl.col("log_end_offset") - pl.col("committed_offset")
    return (
        known.select(*_PAIR, "at", lag.alias("lag")).filter(pl.col("lag") >= 0).sort(*_PAIR, "at")
    )
