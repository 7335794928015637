"""Lag: how far behind groups are, partition by partition."""

from __future__ import annotations

from typing import Final

import pyarrow.compute as pc

from reports.charts.partitions import largest_lags
from reports.page.chart_rows import dicts, figure, labels, place
from reports.page.grids import columns_of, grid_of, of_so_many
from reports.page.model import Figure, Grid, Subject
from reports.page.sections.groups import TONES
from reports.page.texts import cell_text, harmless
from reports.page.workspace_tables import WorkspaceTables

_MOST_BARS: Final = 12
_MOST_ROWS: Final = 25
_COLUMNS: Final = columns_of("lag", tones={"verdict": TONES})


def lag(read: WorkspaceTables, stories: frozenset[str]) -> Subject | None:
    """Return the subject; None where it was not asked."""
    if not read.has("lag"):
        return None
    return Subject(
        anchor="lag",
        title="Lag",
        question="How far behind is each group, is it getting worse, and what will be lost?",
        figures=(
            *_bars(read, "lag", "lag-largest", "The largest lags, in records", "number"),
            *_bars(read, "time_lag_ms", "lag-oldest", "The oldest unread records", "duration"),
        ),
        grids=(_grid(read, stories),),
    )


def _grid(read: WorkspaceTables, stories: frozenset[str]) -> Grid:
    columns = [*(each.name for each in _COLUMNS), "complete", "missing"]
    source = "evaluations/lag"
    grid = grid_of(
        "lag-table",
        "Partitions, the worst verdict first",
        read.first("lag", _MOST_ROWS, columns),
        _COLUMNS,
        top=_MOST_ROWS,
        source=source,
        stories=stories,
    )
    return of_so_many(grid, read.count("lag"), source)


def _bars(
    read: WorkspaceTables, column: str, anchor: str, title: str, kind: str
) -> tuple[Figure, ...]:
    place_columns = ("group_id", "topic", "partition")
    order = [(column, "descending"), *((name, "ascending") for name in place_columns)]
    is_waited_for = (pc.field(column) > 0) & (pc.field("kind") != "stale")
    columns = [*place_columns, column, "kind"]
    largest = read.largest("lag", order, _MOST_BARS, columns, is_waited_for)
    found = dicts(largest, "group_id", "topic", "partition", column)
    names = [f"{row['group_id']} {place(row)}" for row in found]
    named = labels(names)
    drawn = [
        {"place": named[name], "lag": row[column], "label": cell_text(row[column], kind)}
        for name, row in zip(names, found, strict=True)
    ]
    says = f"The first is {harmless(names[0])} with {drawn[0]['label']}." if drawn else ""
    return figure(anchor, title, says, drawn, largest_lags)
