"""Decoded records that count at the instant asked about, read with Arrow or as polars frames."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import TYPE_CHECKING

import polars as pl
import pyarrow as pa
import pyarrow.compute as pc

from analytics.engine.key_places import homes_in
from analytics.replay.dump.coverage import log_starts
from analytics.replay.log.arrow_rows import arrow_rows
from analytics.replay.log.as_of import COMMITS, GROUPS, PLACE, cut, cut_all, timeless_ends
from analytics.replayed.replayed_workspace import replayed_instant
from analytics.tables.record_reader import RecordReader
from schemas import CONSUMER_OFFSETS

if TYPE_CHECKING:
    from analytics.replayed.replayed_workspace import ReplayedWorkspace

_PLACE = ("topic", "partition", "offset", "timestamp")
_SEGMENT = "segment"
"""A snapshot of the metadata log counts by its own time and end, which the file's name has."""


def records_at(
    state: ReplayedWorkspace,
    name: str,
    columns: Sequence[str],
    where: pc.Expression | None = None,
) -> pa.Table:
    """Return the records of a decoded table, of all groups, by partition in order of offset.

    What was deleted below a log's start before the end of the dump is there, too.

    Args:
        state: Says the instant, which lines are followed, and where decoded tables are.
        name: Of the decoded table.
        columns: What is needed; topic, partition, offset and timestamp are there too.
        where: Which records; None is all.

    Returns:
        No rows where the workspace holds no decoded tables.

    Raises:
        WorkspaceError: A file is damaged.
    """
    return arrow_rows(CountedRecords(state).table(name, columns, where))


class CountedRecords:
    """The decoded records of a replayed workspace that count at its instant."""

    def __init__(self, state: ReplayedWorkspace) -> None:
        self._source = CutRecords(state)
        self._of_all = RecordReader(state.source, state.lines, before_swaps=state.before_swaps)
        self._instant = replayed_instant(state.as_of, state.frames)
        self._log_starts = log_starts(state.manifest) if self._instant.is_end else {}

    def rows(
        self, name: str, fields: Mapping[str, str], topic: str = CONSUMER_OFFSETS
    ) -> pl.DataFrame:
        """Read fields of a decoded table, of the groups that are asked about.

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

    def table(
        self, name: str, columns: Sequence[str], where: pc.Expression | None = None
    ) -> pl.DataFrame:
        """Read columns of a decoded table, of all groups (see `records_at`)."""
        asked = list(dict.fromkeys((*_PLACE, *columns)))
        needed = list(dict.fromkeys((*asked, _SEGMENT)))
        found = self._of_all.table_where(name, needed, where)
        ends = self._timeless_ends if found["timestamp"].null_count() else {}
        counted = cut_all({name: found}, self._instant, timeless=ends)[name]
        return counted.select(asked).sort("partition", "offset", maintain_order=True)

    @cached_property
    def _timeless_ends(self) -> Mapping[tuple[str, int], int]:
        """From where on records without a time are later: hardly any dump has one."""
        names = ("topic", "partition", "offset", "timestamp", "value")
        fields = {name: name for name in names}
        read = self._source.rows
        whole = {each: read(each, fields, CONSUMER_OFFSETS) for each in (COMMITS, GROUPS)}
        return timeless_ends(whole, self._instant)


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
