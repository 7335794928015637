"""Groups with records between the two cuts of a log whose times go back, read with Arrow."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow.compute as pc

from analytics.replay.groups.group_records import KINDS
from analytics.replay.log.as_of import COMMITS
from analytics.replay.log.frames import disputed, frames_of_rows
from analytics.tables.record_reader import RecordReader
from schemas import CONSUMER_OFFSETS

if TYPE_CHECKING:
    from collections.abc import Mapping

    from analytics.replay.log.frames import Frame
    from analytics.replayed.replayed_workspace import ReplayedWorkspace


def disputed_partitions(state: ReplayedWorkspace) -> Mapping[int, Frame]:
    """Return by partition of the offsets topic where a log whose times go back was cut."""
    return disputed(frames_of_rows(state.frames), CONSUMER_OFFSETS)


def groups_between_cuts(state: ReplayedWorkspace) -> dict[str, int]:
    """Return by group, also of one that is not there, in which partition not all is certain."""
    found: dict[str, int] = {}
    reader = RecordReader(state.source, state.lines, before_swaps=state.before_swaps)
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
