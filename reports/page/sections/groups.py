"""The table of groups: one row each, the worst first, with how their commits went on."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc

from reports.charts.sparkline import sparkline
from reports.page.grids import columns_of, grid_of, of_so_many
from reports.page.model import Cell, Fact, Grid
from reports.page.texts import ABSENT, harmless
from reports.page.workspace_tables import WorkspaceTables
from schemas.finding_rules import SEVERITIES

MOST: Final = 200
TONES: Final = {
    **dict.fromkeys(("lost_records", "other_topic", "beyond_end", "refused"), "critical"),
    **dict.fromkeys(("no_state", "window_full", "blocked"), "critical"),
    **dict.fromkeys(("commits_without_progress", "silent", "unread", "stalled"), "warning"),
    **dict.fromkeys(("held_back", "never_committed"), "warning"),
    **dict.fromkeys(("stuck_initializing", "stuck_deleting", "cannot_tell"), "warning"),
    **dict.fromkeys(("caught_up", "moving"), "good"),
}
_COLUMNS: Final = columns_of("audited_groups", tones={"verdict": TONES})
_SPARK_AT: Final = 4
_NAMED: Final = {
    "severity": "Worst finding",
    "group_type": "Type",
    "state": "State",
    "verdict": "Verdict",
    "status": "Status",
}


def worst_groups(read: WorkspaceTables) -> pa.Table:
    """Return the rows of `audited_groups` that the page shows."""
    return read.first("audited_groups", MOST)


def groups_grid(read: WorkspaceTables, stories: frozenset[str]) -> Grid:
    """Return the table of groups.

    Args:
        read: `audited_groups`, and `offset_history` of the groups that are shown.
        stories: Groups that have a story.
    """
    rows = worst_groups(read)
    grid = grid_of(
        "groups-table",
        "Groups, the worst first",
        rows,
        _COLUMNS,
        top=MOST,
        source="evaluations/audited_groups",
        stories=stories,
    )
    grid = of_so_many(grid, read.count("audited_groups"), "evaluations/audited_groups")
    if not grid.rows:
        return grid
    sparks = _sparks(read, rows)
    return replace(
        grid,
        heads=(*grid.heads[:_SPARK_AT], "Commits", *grid.heads[_SPARK_AT:]),
        rows=tuple(
            (*row[:_SPARK_AT], spark, *row[_SPARK_AT:])
            for row, spark in zip(grid.rows, sparks, strict=True)
        ),
        numbers=frozenset(n if n < _SPARK_AT else n + 1 for n in grid.numbers),
        sentences=frozenset(),
    )


def _sparks(read: WorkspaceTables, groups: pa.Table) -> list[Cell]:
    wanted = groups.select(["group_id", "busiest_topic", "busiest_partition"]).to_pylist()
    series = _commits(read, wanted)
    return [_spark(row, series) for row in wanted]


def _spark(row: Mapping[str, Any], series: Mapping[Any, list[tuple[int, int]]]) -> Cell:
    points = series.get((row["group_id"], row["busiest_topic"], row["busiest_partition"]), [])
    if len(points) < 2:
        return Cell(ABSENT)
    place = harmless(f"{row['busiest_topic']}-{row['busiest_partition']}")
    says = f"committed offset of {place}: {points[0][1]:,} to {points[-1][1]:,}"
    return Cell(says, svg=sparkline(points))


def _commits(
    read: WorkspaceTables, wanted: list[Mapping[str, Any]]
) -> dict[Any, list[tuple[int, int]]]:
    """Return times and committed offsets of the busiest partition of each group."""
    history = read.rows("offset_history")
    if not history.num_rows:
        return {}
    groups = pa.array([row["group_id"] for row in wanted], pa.string())
    known = history.filter(
        pc.and_(pc.is_in(history["group_id"], groups), pc.is_valid(history["committed_offset"]))
    )
    keys = {(row["group_id"], row["busiest_topic"], row["busiest_partition"]) for row in wanted}
    found: dict[Any, list[tuple[int, int]]] = {}
    columns = ("group_id", "topic", "partition", "effective_timestamp", "committed_offset")
    lists = [known[name].to_pylist() for name in columns[:3]]
    times = pc.cast(known[columns[3]], pa.int64()).to_pylist()
    for *key, time, offset in zip(*lists, times, known[columns[4]].to_pylist(), strict=True):
        if tuple(key) in keys and time is not None:
            found.setdefault(tuple(key), []).append((time, offset))
    return {key: sorted(points) for key, points in found.items()}


def counts_of(read: WorkspaceTables) -> tuple[Fact, ...]:
    """Return how many groups there are of each type, state and verdict."""
    facts = []
    rows = read.rows("audited_group_counts").to_pylist()
    worst_first = [*SEVERITIES, "none"]
    rows.sort(key=lambda row: worst_first.index(row["value"]) if row["value"] in worst_first else 0)
    for name, title in _NAMED.items():
        parts = [
            f"{row['groups']:,} {harmless(row['value'].replace('_', ' '))}"
            for row in rows
            if row["property"] == name
        ]
        if parts:
            facts.append(Fact(title, Cell(", ".join(parts))))
    return tuple(facts)
