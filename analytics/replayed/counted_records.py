"""Decoded records that count at the instant asked about, as frames of polars."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property
from typing import TYPE_CHECKING

import polars as pl

from analytics.replay.dump.coverage import log_starts
from analytics.replay.log.as_of import PLACE, cut
from analytics.replay.log.timeless import COMMITS, GROUPS, timeless_ends
from analytics.replayed.cut_records import CutRecords
from analytics.replayed.replayed_instant import replayed_instant
from schemas import CONSUMER_OFFSETS

if TYPE_CHECKING:
    from analytics.replayed.replayed_workspace import ReplayedWorkspace


class CountedRecords:
    """The records of a replayed workspace that count, of the groups that are asked about."""

    def __init__(self, state: ReplayedWorkspace) -> None:
        self._source = CutRecords(state)
        self._instant = replayed_instant(state.as_of, state.frames)
        self._log_starts = log_starts(state.manifest) if self._instant.is_end else {}

    def rows(
        self, name: str, fields: Mapping[str, str], topic: str = CONSUMER_OFFSETS
    ) -> pl.DataFrame:
        """Read a decoded table.

        Args:
            name: The table ("group_metadata").
            fields: What is read, by column: ``value.generation``; of the metadata log `segment`,
                too.
            topic: The internal topic.

        Raises:
            WorkspaceError: A file is damaged.
        """
        found = self._source.rows(name, {**fields, **PLACE}, topic)
        ends = self._timeless_ends if found["_timestamp"].null_count() else {}
        return cut(found, self._instant, log_starts=self._log_starts, timeless_ends=ends)

    @cached_property
    def _timeless_ends(self) -> Mapping[tuple[str, int], int]:
        """From where on records without a time are later: hardly any dump has one."""
        names = ("topic", "partition", "offset", "timestamp", "value")
        fields = {name: name for name in names}
        read = self._source.rows
        whole = {each: read(each, fields, CONSUMER_OFFSETS) for each in (COMMITS, GROUPS)}
        return timeless_ends(whole, self._instant)
