"""Consistency: lines of history that parted, and records that do not fit."""

from __future__ import annotations

from typing import Final

import pyarrow.compute as pc

from reports.page.grids import Shown, grid_of
from reports.page.model import Subject
from reports.page.workspace_tables import WorkspaceTables

_MOST_ROWS: Final = 25
_LINES: Final = (
    Shown("topic", "Topic", "name"),
    Shown("partition", "Partition", "partition"),
    Shown("copy", "Copy", "name"),
    Shown("diverges_at", "Parts at offset", "number"),
    Shown("lost_records", "Records lost", "number"),
    Shown("lost_from_timestamp", "From", "time"),
    Shown("lost_to_timestamp", "To", "time"),
    Shown("surviving_copy", "Survived on", "name"),
    Shown("elected_at", "Elected", "time"),
    Shown("unclean", "Unclean"),
    Shown("groups_only_there", "Groups only there"),
)
_FAULTS: Final = (
    Shown("topic", "Topic", "name"),
    Shown("coordinator_partition", "Partition", "partition"),
    Shown("record_offset", "Offset", "number"),
    Shown("group_id", "Group", "group"),
    Shown("fault", "Fault", "word"),
    Shown("stops_loading", "Stops loading"),
    Shown("at", "At", "time"),
    Shown("detail", "Detail"),
)
_QUALITY: Final = (
    Shown("table", "Table"),
    Shown("expectation", "What is expected"),
    Shown("severity", "Severity", "word", {"critical": "critical", "warning": "warning"}),
    Shown("outcome", "Outcome", "word", {"failed": "critical", "broken": "warning"}),
    Shown("unexpected_count", "Rows not as expected", "number"),
    Shown("rows", "Rows", "number"),
    Shown("example", "One of them"),
    Shown("reason", "Why"),
    Shown("suite", "Expected by"),
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
