"""Consistency: lines of history that parted, and records that do not fit."""

from __future__ import annotations

from typing import Final

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


def consistency(read: WorkspaceTables, stories: frozenset[str]) -> Subject | None:
    """Return the subject: two tables, as far as they have rows."""
    parted, faults = read.rows("divergences"), read.rows("load_faults")
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
    )
    there = tuple(each for each in grids if each.rows)
    fine = "The copies agree, and every record fits what came before it."
    return Subject(
        anchor="consistency",
        title="Consistency",
        question="Do the copies agree, and does every record fit what came before it?",
        notes=() if there else (fine,),
        grids=there,
    )
