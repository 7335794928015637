"""Consistency: lines of history that parted, and records that do not fit."""

from __future__ import annotations

from typing import Final

import pyarrow.compute as pc

from reports.page.grids import columns_of, grid_of
from reports.page.model import Subject
from reports.page.workspace_tables import WorkspaceTables

_MOST_ROWS: Final = 25
_LINES: Final = columns_of("divergences")
_FAULTS: Final = columns_of("load_faults")
_QUALITY: Final = columns_of(
    "data_quality",
    tones={
        "severity": {"critical": "critical", "warning": "warning"},
        "outcome": {"failed": "critical", "broken": "warning"},
    },
)
_AGREE: Final = "The copies agree, and every record fits what came before it."
_MET: Final = "Every expectation of the tables is met (evaluations/data_quality)."


def consistency(read: WorkspaceTables, stories: frozenset[str]) -> Subject | None:
    """Return the subject: its tables, as far as they have rows."""
    parted, faults = read.rows("divergences"), read.rows("load_faults")
    quality = read.rows("data_quality")
    unmet = (
        quality.filter(pc.not_equal(quality["outcome"], "passed")) if quality.num_rows else quality
    )
    grids = (
        grid_of(
            "divergences-table",
            "Lines of history that did not survive",
            parted,
            _LINES,
            top=_MOST_ROWS,
            source="history/divergences",
            stories=stories,
        ),
        grid_of(
            "faults-table",
            "Records that do not fit, or that a coordinator refuses to load",
            faults,
            _FAULTS,
            top=_MOST_ROWS,
            source="history/load_faults",
            stories=stories,
        ),
        grid_of(
            "quality-table",
            "Expectations of the tables that are not met",
            unmet,
            _QUALITY,
            top=_MOST_ROWS,
            source="evaluations/data_quality",
        ),
    )
    there = tuple(each for each in grids if each.rows)
    notes = (
        *([] if parted.num_rows or faults.num_rows else [_AGREE]),
        *([_MET] if quality.num_rows and not unmet.num_rows else []),
    )
    return Subject(
        anchor="consistency",
        title="Consistency",
        question="Do the copies agree, does every record fit, do the tables hold what they should?",
        notes=notes,
        grids=there,
    )
