"""Reads the decoded records of a replayed workspace, as far as they are asked about."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from analytics.engine.key_places import homes_in
from analytics.tables.record_reader import RecordReader

if TYPE_CHECKING:
    from analytics.replayed.replayed_workspace import ReplayedWorkspace


class CutRecords(RecordReader):
    """A reader of the records that a replay is about."""

    def __init__(self, state: ReplayedWorkspace, partitions: Sequence[int] = ()) -> None:
        super().__init__(
            state.source,
            state.lines,
            state.tables.selection,
            partitions=partitions,
            homes=homes_in(state.manifest),
            before_swaps=state.before_swaps,
        )
