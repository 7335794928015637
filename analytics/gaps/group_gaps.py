"""Why something of a group cannot be told."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import pyarrow as pa
import pyarrow.compute as pc

from analytics.gaps.gap import Gap, gap
from analytics.replay.dump.choices import archived
from analytics.replay.groups.group_records import KINDS
from analytics.replay.log.as_of import COMMITS
from analytics.replay.log.log_times import disputed, frames_of_rows
from analytics.replayed.records import Records
from schemas import CONSUMER_OFFSETS

if TYPE_CHECKING:
    from analytics.replay.log.log_times import Frame
    from analytics.replayed.replayed_workspace import ReplayedWorkspace

# Offsets of archived rows of which nobody can tell whether they took effect.

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


@dataclass(frozen=True)
class GroupGaps:
    """Why something of a group cannot be told; what has no gap is known whole.

    Attributes:
        offsets: Why its committed or pending offsets may not be all, or not the last ones.
        membership: Why its state, members and assignments may not be the last ones.
        history: Why its history has gaps.
    """

    offsets: tuple[Gap, ...] = ()
    membership: tuple[Gap, ...] = ()
    history: tuple[Gap, ...] = ()

    @property
    def every(self) -> tuple[Gap, ...]:
        """All of them, each once."""
        return tuple(dict.fromkeys((*self.offsets, *self.membership, *self.history)))


def gap_between_cuts(code: str, group: str, partition: int, frame: Frame) -> Gap:
    """Return a gap of a group with records between the two cuts of a log.

    Args:
        code: What of the group is not certain.
        group: Its id.
        partition: Of the offsets topic.
        frame: The cuts.
    """
    return gap(
        code,
        group_id=group,
        topic=CONSUMER_OFFSETS,
        partition=partition,
        from_offset=frame.certain_end,
        to_offset=frame.possible_end,
        why=frame.why(CONSUMER_OFFSETS, partition),
    )


def disputed_partitions(state: ReplayedWorkspace) -> Mapping[int, Frame]:
    """Return by partition of the offsets topic where a log whose times go back was cut."""
    return disputed(frames_of_rows(state.frames), CONSUMER_OFFSETS)


def groups_between_cuts(state: ReplayedWorkspace) -> dict[str, int]:
    """Return by group, also of one that is not there, in which partition not all is certain."""
    found: dict[str, int] = {}
    reader = Records(state).of_all
    for number, frame in disputed_partitions(state).items():
        where = (
            (pc.field("topic") == CONSUMER_OFFSETS)
            & (pc.field("partition") == number)
            & (pc.field("offset") >= frame.certain_end)
            & (pc.field("offset") < frame.possible_end)
        )
        fields = {COMMITS: "group", **{name: kind.group_field for name, kind in KINDS.items()}}
        for name, field in fields.items():
            rows = reader.table_where(name, ["key"], where)
            names = rows["key"].struct.field(field).unique().to_list()
            found |= dict.fromkeys(names, number)
    return found
