"""Removals: which committed offsets went, by what, and whether rightly."""

from __future__ import annotations

from typing import Final

import pyarrow.compute as pc

from reports.charts.expiring_offsets import removals_timeline
from reports.page.chart_rows import at, dicts, figure
from reports.page.grids import columns_of, grid_of
from reports.page.model import Subject
from reports.page.texts import harmless, moment
from reports.page.workspace_tables import WorkspaceTables

_MOST_ROWS: Final = 20
_MOST_MARKS: Final = 1000
_TONES: Final = {
    "early": "critical",
    "late": "warning",
    "cannot_tell": "warning",
    "on_time": "good",
}
_COLUMNS: Final = columns_of("offset_removals", tones={"verdict": _TONES})


def removals(read: WorkspaceTables, stories: frozenset[str]) -> Subject | None:
    """Return the subject; None where it was not asked."""
    if not read.has("offset_removals"):
        return None
    table = read.rows("offset_removals")
    latest = table.sort_by([("removed_at", "descending"), ("group_id", "ascending")])
    known = latest.filter(pc.is_valid(latest["removed_at"]))
    rows = [
        {
            "at": at(row["removed_at"]),
            "cause": harmless(str(row["cause"]).replace("_", " ")),
            "verdict": harmless(str(row["verdict"]).replace("_", " ")),
        }
        for row in dicts(known.slice(0, _MOST_MARKS), "removed_at", "cause", "verdict")
    ]
    newest = dicts(known.slice(0, 1), "group_id", "removed_at", "cause")
    says = (
        f"The latest is of {harmless(newest[0]['group_id'])}, "
        f"at {moment(newest[0]['removed_at'])}: {newest[0]['cause'].replace('_', ' ')}."
        if newest
        else ""
    )
    return Subject(
        anchor="removals",
        title="Removals",
        question="Which committed offsets went, by what, and was it right?",
        notes=() if table.num_rows else ("No committed offset was removed in this dump.",),
        figures=figure(
            "removals-timeline", "Removed offsets by cause (UTC)", says, rows, removals_timeline
        ),
        grids=(
            grid_of(
                "removals-table",
                "Removed offsets, the latest first",
                latest,
                _COLUMNS,
                top=_MOST_ROWS,
                source="evaluations/offset_removals",
                stories=stories,
            ),
        ),
    )
