"""What is left to read: lag of groups, and backlogs of share groups.

Of share groups: what is left to deliver, what blocks it, and how often it was tried.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

import polars as pl
import pyarrow as pa

from reports.charts.offsets import delivery_counts, largest_lags, share_window
from reports.page.groups import TONES
from reports.page.model import Figure, Grid, Subject
from reports.page.rows import (
    columns_of,
    dicts,
    doubt_said,
    figure,
    grid_of,
    labels,
    of_so_many,
    place,
    read_of,
    text_of,
)
from reports.page.texts import harmless
from reports.page.workspace_tables import WorkspaceTables, is_of
from reports.quantities import count

# Lag: how far behind groups are, partition by partition.

_MOST_BARS: Final = 12
_MOST_LAGS: Final = 25
_LAGS: Final = columns_of("lag", tones={"verdict": TONES})
_LAG_COLUMNS: Final = {each.name: each for each in _LAGS}


def lag(read: WorkspaceTables, stories: frozenset[str]) -> Subject | None:
    """Return the subject; None where it was not asked."""
    if not read.has("lag"):
        return None
    return Subject(
        anchor="lag",
        title="Lag",
        question="How far behind is each group, is it getting worse, and what will be lost?",
        figures=(
            *_bars(read, "lag", "lag-largest", "The largest lags, in records"),
            *_bars(read, "time_lag_ms", "lag-oldest", "The oldest unread records"),
        ),
        grids=(_grid(read, stories),),
    )


def _grid(read: WorkspaceTables, stories: frozenset[str]) -> Grid:
    columns = [*read_of(_LAGS), "complete", "missing"]
    source = "evaluations/lag"
    grid = grid_of(
        "lag-table",
        "Partitions, the worst verdict first",
        read.first("lag", _MOST_LAGS, columns),
        _LAGS,
        top=_MOST_LAGS,
        source=source,
        stories=stories,
    )
    return of_so_many(grid, read.count("lag"), source)


def _bars(read: WorkspaceTables, column: str, anchor: str, title: str) -> tuple[Figure, ...]:
    shown = _LAG_COLUMNS[column]
    place_columns = ("group_id", "topic", "partition")
    order = [(column, "descending"), *((name, "ascending") for name in place_columns)]
    is_waited_for = (pl.col(column) > 0) & (pl.col("kind") != "stale")
    columns = [*place_columns, *read_of([shown]), "kind"]
    largest = read.largest("lag", order, _MOST_BARS, columns, is_waited_for)
    found = dicts(largest, *place_columns, *read_of([shown]))
    names = [f"{row['group_id']} {place(row)}" for row in found]
    named = labels(names)
    drawn = [
        {"place": named[name], "lag": row[column], "label": text_of(row, shown)}
        for name, row in zip(names, found, strict=True)
    ]
    says = f"The first is {harmless(names[0])} with {drawn[0]['label']}." if drawn else ""
    return figure(anchor, title, says, drawn, largest_lags)


_MOST_PLACES: Final = 12
_MOST_RANGES: Final = 1500
_MOST_BACKLOGS: Final = 20
_BACKLOGS: Final = columns_of("share_backlog", tones={"status": TONES})


def share(read: WorkspaceTables, stories: frozenset[str]) -> Subject | None:
    """Return the subject; None where there are no share groups."""
    source = "evaluations/share_backlog"
    backlog = read.first("share_backlog", _MOST_BACKLOGS)
    if not backlog.num_rows:
        return None
    wanted = ("group_id", "topic", "partition", "start_offset", "status")
    first = dicts(backlog.slice(0, _MOST_PLACES), *wanted)
    return Subject(
        anchor="share",
        title="Share groups",
        question="What is left to deliver, what keeps the start offset where it is?",
        figures=(*_window(read, first), *_deliveries(read, first)),
        grids=(
            of_so_many(
                grid_of(
                    "share-table",
                    "Share partitions, the worst first",
                    backlog,
                    _BACKLOGS,
                    top=_MOST_BACKLOGS,
                    source=source,
                    stories=stories,
                ),
                read.count("share_backlog"),
                source,
            ),
        ),
    )


def _named(row: dict[str, object]) -> str:
    return f"{row['group_id']} {place(row)}"


def _of_places(table: pa.Table, names: Mapping[str, str]) -> pa.Table:
    """Return the rows of the share partitions that a chart shows."""
    if not table.num_rows:
        return table
    is_shown = [_named(row) in names for row in dicts(table, "group_id", "topic", "partition")]
    return table.filter(pa.array(is_shown))


def _window(read: WorkspaceTables, first: list[dict[str, object]]) -> tuple[Figure, ...]:
    names = labels(map(_named, first))
    columns = ("group_id", "topic", "partition", "first_offset", "last_offset")
    table = read.rows("share_batches", where=is_of(row["group_id"] for row in first))
    batches = dicts(table, *columns, "delivery_state_name") if table.num_rows else []
    rows = [
        {
            "place": names[_named(row)],
            "first": row["first_offset"],
            "beyond": row["last_offset"] + 1,
            "state": row["delivery_state_name"],
        }
        for row in batches
        if _named(row) in names
    ][:_MOST_RANGES]
    starts = [
        {"place": names[_named(row)], "start": row["start_offset"]}
        for row in first
        if row["start_offset"] is not None
    ]
    says = (
        f"{harmless(_named(first[0]))} is {str(first[0]['status']).replace('_', ' ')}; "
        f"start offset {first[0]['start_offset']}. The upright line is the start offset; thick "
        f"is what is still to be dealt with.{doubt_said(_of_places(table, names))}"
    )
    return figure(
        "share-window",
        "Delivery states along the offsets",
        says,
        rows if starts else (),
        lambda found, anchor: share_window(found, starts, anchor),
    )


def _deliveries(read: WorkspaceTables, first: list[dict[str, object]]) -> tuple[Figure, ...]:
    names = labels(map(_named, first))
    columns = ("group_id", "topic", "partition", "delivery_count", "delivery_state_name", "records")
    table = read.rows("share_delivery_counts", where=is_of(row["group_id"] for row in first))
    known = [
        row
        for row in (dicts(table, *columns) if table.num_rows else [])
        if _named(row) in names and row["delivery_count"] is not None
    ]
    known.sort(key=lambda row: list(names).index(_named(row)))
    rows = [
        {
            "place": names[_named(row)],
            "deliveries": row["delivery_count"],
            "state": row["delivery_state_name"],
            "records": row["records"],
            "label": f"{row['records']:,}",
        }
        for row in known
    ]
    most = max(known, key=lambda row: int(row["delivery_count"]), default=None)
    doubt = doubt_said(_of_places(table, names))
    says = (
        f"Delivered the most often: {count(most['records'], 'record')} of "
        f"{harmless(_named(most))}: {most['delivery_count']} times, "
        f"{str(most['delivery_state_name']).lower()}.{doubt}"
        if most
        else ""
    )
    return figure(
        "share-deliveries", "Records by how often they were delivered", says, rows, delivery_counts
    )
