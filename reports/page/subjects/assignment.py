"""Assignment: how evenly partitions are dealt, and what other assignors would give."""

from __future__ import annotations

from typing import Final

import pyarrow as pa
import pyarrow.compute as pc

from reports.charts.members import spread_of_partitions
from reports.page.chart_rows import dicts, figure, labels
from reports.page.grids import columns_of, grid_of
from reports.page.model import Subject
from reports.page.texts import harmless
from reports.page.workspace_tables import WorkspaceTables

_MOST_GROUPS: Final = 16
_MOST_ROWS: Final = 24
_COLUMNS: Final = columns_of("assignment_alternatives")


def assignment(read: WorkspaceTables, stories: frozenset[str]) -> Subject | None:
    """Return the subject; None where it was not asked."""
    if not read.has("assignment_balance"):
        return None
    uneven = read.rows("assignment_balance").sort_by(
        [("score", "ascending"), ("group_id", "ascending")]
    )
    known = dicts(
        uneven.filter(pc.is_valid(uneven["mean_partitions"])).slice(0, _MOST_GROUPS),
        *("group_id", "min_partitions", "mean_partitions", "max_partitions", "verdict"),
    )
    named = labels(row["group_id"] for row in known)
    rows = [
        {
            "group": named[row["group_id"]],
            "fewest": row["min_partitions"],
            "mean": row["mean_partitions"],
            "most": row["max_partitions"],
            "verdict": harmless(str(row["verdict"]).replace("_", " ")),
        }
        for row in known
    ]
    first = known[0] if known else None
    says = (
        f"The most uneven is {harmless(first['group_id'])}: members have "
        f"{first['min_partitions']} to {first['max_partitions']} partitions."
        if first
        else ""
    )
    return Subject(
        anchor="assignment",
        title="Assignment",
        question="How evenly are partitions dealt, and what would each assignor give?",
        notes=() if uneven.num_rows else ("No group has members with partitions.",),
        figures=figure(
            "assignment-spread",
            "Partitions a member: the fewest, the mean, the most",
            says,
            rows,
            spread_of_partitions,
        ),
        grids=(
            grid_of(
                "assignment-table",
                "What each assignor would give the most uneven groups",
                _of_groups(read.rows("assignment_alternatives"), uneven),
                _COLUMNS,
                top=_MOST_ROWS,
                source="evaluations/assignment_alternatives",
                stories=stories,
            ),
        ),
    )


def _of_groups(alternatives: pa.Table, uneven: pa.Table) -> pa.Table:
    """Return alternatives in the order of groups."""
    if not alternatives.num_rows:
        return alternatives
    groups = pc.unique(uneven["group_id"])
    rank = pc.index_in(alternatives["group_id"], value_set=groups)
    ranked = alternatives.append_column("rank", rank)
    order = [("rank", "ascending"), ("is_current", "descending"), ("score", "descending")]
    return ranked.sort_by([*order, ("assignor", "ascending")])
