"""Offsets of archived rows of which nobody can tell whether they took effect, in words."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import pyarrow as pa
import pyarrow.compute as pc

from analytics.dump.inspection.found_losses import UNDECIDED
from analytics.replay.dump.assumptions import archived
from schemas import CONSUMER_OFFSETS

if TYPE_CHECKING:
    from analytics.replayed.replayed_workspace import ReplayedWorkspace

_MOST_NAMED = 5
_IS_UNDECIDED: Final = {
    "committed_offsets": pc.field("via") == "unknown",
    "offset_history": pc.field("is_undecided"),
}
"""Which rows of a table are such."""


def undecided_of_all(replayed: ReplayedWorkspace) -> str | None:
    """Return how many committed offsets of which groups cannot be told; None where all can."""
    rows = _rows(replayed, "committed_offsets", None)
    groups = sorted(set(rows["group_id"].to_pylist()))
    if not groups:
        return None
    more = len(groups) - _MOST_NAMED
    named = ", ".join(groups[:_MOST_NAMED]) + (f" and {_count(more, 'more group')}" * (more > 0))
    return f"{_count(rows.num_rows, 'committed offset')} of {named}: {UNDECIDED}"


def undecided_of(
    replayed: ReplayedWorkspace, group: str, home: int | None
) -> tuple[list[str], list[str]]:
    """Return why the offsets of a group, and their history, cannot be told.

    Args:
        replayed: At the instant asked about.
        group: Its id.
        home: The partition of the offsets topic it belongs to.
    """
    if home not in archived(replayed.manifest, CONSUMER_OFFSETS):
        return [], []
    found = _rows(replayed, "committed_offsets", group).num_rows
    changes = _rows(replayed, "offset_history", group).num_rows
    said = _count(found, "committed offset")
    offsets = [f"{group}: {said} cannot be told: {UNDECIDED}"] if found else []
    said = _count(changes, "change")
    history = [f"{group}: {said} of its offsets may not have happened: {UNDECIDED}"]
    return offsets, history if changes else []


def _rows(replayed: ReplayedWorkspace, name: str, group: str | None) -> pa.Table:
    if not replayed.tables.has(name):
        return pa.table({"group_id": pa.array([], pa.string())})
    where = _IS_UNDECIDED[name]
    if group is not None:
        where &= pc.field("group_id") == group
    return replayed.tables.read(name, ["group_id"], where)


def _count(number: int, one: str) -> str:
    return f"{number:,} {one}{'s' * (number != 1)}"
