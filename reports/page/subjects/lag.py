"""Lag: how far behind groups are, partition by partition."""

from __future__ import annotations

from typing import Final

import pyarrow as pa
import pyarrow.compute as pc

from reports.charts.partitions import largest_lags
from reports.page.chart_rows import dicts, figure, labels, place
from reports.page.grids import Shown, grid_of
from reports.page.model import Figure, Subject
from reports.page.sections.groups import TONES
from reports.page.texts import cell_text, harmless
from reports.page.workspace_tables import WorkspaceTables

_MOST_BARS: Final = 12
_MOST_ROWS: Final = 25
_COLUMNS: Final = (
    Shown("group_id", "Group", "group"),
    Shown("topic", "Topic", "name"),
    Shown("partition", "Partition", "partition"),
    Shown("verdict", "Verdict", "word", TONES),
    Shown("lag", "Lag", "number"),
    Shown("time_lag_ms", "Time lag", "duration"),
    Shown("trend", "Trend", "word"),
    Shown("status", "Status (Burrow)", "word"),
    Shown("committed_offset", "Committed offset", "number"),
    Shown("log_end_offset", "Log end offset", "number"),
    Shown("lost_offsets", "Lost", "number"),
    Shown("loss_at", "Loss at", "time"),
    Shown("last_commit_at", "Last commit", "time"),
    Shown("reason", "Why not known"),
)


def lag(read: WorkspaceTables, stories: frozenset[str]) -> Subject | None:
    """Return the subject; None where it was not asked."""
    if not read.has("lag"):
        return None
    rows = read.rows("lag", [*(each.name for each in _COLUMNS), "kind", "complete", "missing"])
    return Subject(
        anchor="lag",
        title="Lag",
        question="How far behind is each group, is it getting worse, and what will be lost?",
        figures=(
            *_bars(rows, "lag", "lag-largest", "The largest lags, in records", "number"),
            *_bars(rows, "time_lag_ms", "lag-oldest", "The oldest unread records", "duration"),
        ),
        grids=(
            grid_of(
                "lag-table",
                "Partitions, the worst verdict first",
                rows,
                _COLUMNS,
                top=_MOST_ROWS,
                source="evaluations/lag",
                stories=stories,
            ),
        ),
    )


def _bars(rows: pa.Table, column: str, anchor: str, title: str, kind: str) -> tuple[Figure, ...]:
    waited_for = rows.filter(
        pc.and_(pc.greater(rows[column], 0), pc.not_equal(rows["kind"], "stale"))
    )
    order = [(column, "descending"), ("group_id", "ascending"), ("topic", "ascending")]
    largest = waited_for.sort_by([*order, ("partition", "ascending")]).slice(0, _MOST_BARS)
    found = dicts(largest, "group_id", "topic", "partition", column)
    names = [f"{row['group_id']} {place(row)}" for row in found]
    named = labels(names)
    drawn = [
        {"place": named[name], "lag": row[column], "label": cell_text(row[column], kind)}
        for name, row in zip(names, found, strict=True)
    ]
    says = f"The first is {harmless(names[0])} with {drawn[0]['label']}." if drawn else ""
    return figure(anchor, title, says, drawn, largest_lags)
