"""Offsets of archived rows of which nobody can tell whether they took effect."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import pyarrow as pa
import pyarrow.compute as pc

from analytics.gaps.gap import Gap, gap
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


def undecided_of_all(replayed: ReplayedWorkspace) -> Gap | None:
    """Return how many committed offsets of which groups cannot be told; None where all can."""
    rows = _rows(replayed, "committed_offsets", None)
    groups = sorted(set(rows["group_id"].to_pylist()))
    if not groups:
        return None
    return gap(
        "offsets_of_groups_undecided",
        offsets=rows.num_rows,
        groups=tuple(groups[:_MOST_NAMED]),
        more=max(len(groups) - _MOST_NAMED, 0) or None,
    )


def undecided_of(
    replayed: ReplayedWorkspace, group: str, home: int | None
) -> tuple[list[Gap], list[Gap]]:
    """Return why the offsets of a group, and their history, cannot be told.

    Args:
        replayed: At the instant asked about.
        group: Its id.
        home: The partition of the offsets topic it belongs to.
    """
    if home not in archived(replayed.manifest, CONSUMER_OFFSETS):
        return [], []
    offsets = _rows(replayed, "committed_offsets", group).num_rows
    changes = _rows(replayed, "offset_history", group).num_rows
    return (
        [gap("offsets_undecided", group_id=group, offsets=offsets)] if offsets else [],
        [gap("history_undecided", group_id=group, changes=changes)] if changes else [],
    )


def _rows(replayed: ReplayedWorkspace, name: str, group: str | None) -> pa.Table:
    if not replayed.tables.has(name):
        return pa.table({"group_id": pa.array([], pa.string())})
    where = _IS_UNDECIDED[name]
    if group is not None:
        where &= pc.field("group_id") == group
    return replayed.tables.read(name, ["group_id"], where)
