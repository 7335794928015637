"""The one way to decoded records: as they count at the instant of a replayed workspace."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, reduce
from typing import TYPE_CHECKING

import polars as pl
import pyarrow as pa
import pyarrow.compute as pc

from analytics.contracts import arrow_rows
from analytics.engine.cut_tables import Cut, cut_of
from analytics.engine.key_places import homes_in
from analytics.replay.dump.coverage import log_starts
from analytics.replay.groups.group_records import KINDS
from analytics.replay.log.log_times import (
    COMMITS,
    GROUPS,
    PLACE,
    cut,
    cut_all,
    disputed,
    frames_of_rows,
    timeless_ends,
)
from analytics.replayed.replayed_workspace import replayed_instant
from analytics.tables.record_reader import RecordReader
from schemas import CONSUMER_OFFSETS

if TYPE_CHECKING:
    from analytics.replay.log.log_times import Frame
    from analytics.replayed.replayed_workspace import ReplayedWorkspace

_PLACE = ("topic", "partition", "offset", "timestamp")
_SEGMENT = "segment"
"""A snapshot of the metadata log counts by its own time and end, which the file's name has."""


class Records:
    """The decoded records of a replayed workspace: of the lines that are followed at its instant.

    Attributes:
        of_asked: Reads those of the groups and topics that are asked about, cut or not.
        of_all: Reads those of all groups, cut or not.
        instant: Until when records count.
    """

    def __init__(self, state: ReplayedWorkspace, partitions: Sequence[int] = ()) -> None:
        """Open the records.

        Args:
            state: Says the instant, which lines are followed, and where decoded tables are.
            partitions: Those of internal topics that are read; empty is all.
        """
        self.of_asked = RecordReader(
            state.source,
            state.lines,
            state.tables.selection,
            partitions=partitions,
            homes=homes_in(state.manifest),
            before_swaps=state.before_swaps,
        )
        self.of_all = RecordReader(state.source, state.lines, before_swaps=state.before_swaps)
        self.instant = replayed_instant(state.as_of, state.frames)
        self._log_starts = log_starts(state.manifest) if self.instant.is_end else {}

    @cached_property
    def cut(self) -> Cut:
        """All decoded tables of the groups that are asked about, cut as a replay cuts them."""
        return cut_of(self.of_asked.prepared(), self.instant, self._log_starts)

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
        return self._counted(self.of_asked.rows(name, self._with_place(fields), topic))

    def pieces(
        self, name: str, fields: Mapping[str, str], topic: str = CONSUMER_OFFSETS
    ) -> Iterator[pl.DataFrame]:
        """Yield the same, some rows at a time; at least one frame."""
        return map(self._counted, self.of_asked.pieces(name, self._with_place(fields), topic))

    def table(
        self, name: str, columns: Sequence[str], where: pc.Expression | None = None
    ) -> pa.Table:
        """Read columns of a decoded table, of all groups, by partition in order of offset.

        What was deleted below a log's start before the end of the dump is there, too.

        Args:
            name: The table ("register_broker_record").
            columns: What is needed; topic, partition, offset and timestamp are there too.
            where: Which records; None is all.

        Returns:
            No rows where the workspace holds no decoded tables.

        Raises:
            WorkspaceError: A file is damaged.
        """
        asked = list(dict.fromkeys((*_PLACE, *columns)))
        needed = list(dict.fromkeys((*asked, _SEGMENT)))
        rows = self._at_instant(self.of_all.table_where(name, needed, where))
        in_order = rows.select(asked).sort("partition", "offset", maintain_order=True)
        return arrow_rows(in_order)

    def table_pieces(self, name: str, columns: Sequence[str], topic: str) -> Iterator[pl.DataFrame]:
        """Yield columns of a decoded table, of all groups as `table` has them, in no order.

        Args:
            name: The table ("share_update"); not one of the metadata log.
            columns: What is needed.
            topic: The internal topic.

        Yields:
            At least one frame.

        Raises:
            WorkspaceError: A file is damaged.
        """
        is_end = self.instant.is_end
        fields = {each: each for each in dict.fromkeys((*columns, *(() if is_end else _PLACE)))}
        for rows in self.of_all.pieces(name, fields, topic):
            yield rows if is_end else self._at_instant(rows).select(columns)

    def _at_instant(self, rows: pl.DataFrame) -> pl.DataFrame:
        ends = self._timeless_ends if rows["timestamp"].null_count() else {}
        return cut_all({"": rows}, self.instant, timeless=ends)[""]

    def _with_place(self, fields: Mapping[str, str]) -> Mapping[str, str]:
        return {**fields, **PLACE} if self._is_cut else fields

    @property
    def _is_cut(self) -> bool:
        return bool(self._log_starts) or not self.instant.is_end

    def _counted(self, rows: pl.DataFrame) -> pl.DataFrame:
        if not self._is_cut:
            return rows
        ends = self._timeless_ends if rows["_timestamp"].null_count() else {}
        return cut(rows, self.instant, log_starts=self._log_starts, timeless_ends=ends)

    @cached_property
    def _timeless_ends(self) -> Mapping[tuple[str, int], int]:
        """From where on records without a time are later: hardly any dump has one.

        They lie behind a record of a later time, whichever group that is of.
        """
        read, are_timeless = self.of_asked.unfiltered().rows, pc.field("timestamp").is_null()
        if not self.of_asked.count((COMMITS, GROUPS), are_timeless):
            return {}
        names = ("topic", "partition", "offset", "timestamp", "value")
        fields = {name: name for name in names}
        whole = {each: read(each, fields, CONSUMER_OFFSETS) for each in (COMMITS, GROUPS)}
        return timeless_ends(whole, self.instant)


@dataclass(frozen=True)
class RecordGroups:
    """Decoded records of the groups that are asked about, to be read with other rows of groups.

    Attributes:
        records: Where they are.
        name: The decoded table.
        fields: What is read, as `Records.rows` takes it.
        group: The id of the group of what is read; None where a record is of no group: a marker is
            read with all groups that its producer has committed for.
        keep: Takes what is read, and returns what is wanted; None is all.
        left_out: Columns that say of which group a row is, and nothing more.
    """

    records: Records
    name: str
    fields: Mapping[str, str]
    group: pl.Expr | None
    keep: Callable[[pl.DataFrame], pl.DataFrame] | None = None
    left_out: Sequence[str] = ()

    def pieces(self) -> Iterator[pl.DataFrame]:
        """Yield the records, some after the others; at least one frame."""
        pieces = self.records.pieces(self.name, self.fields)
        return pieces if self.keep is None else map(self.keep, pieces)

    def of_decoded(self, rows: Iterable[pl.DataFrame]) -> pl.DataFrame:
        """Return what is read of rows of the decoded table, all that count."""
        fields = [_field(path).alias(column) for column, path in self.fields.items()]
        empty = self.records.of_asked.empty(self.name)
        read = pl.concat(each.select(fields) for each in (empty, *rows))
        return read if self.keep is None else self.keep(read)


def _field(path: str) -> pl.Expr:
    column, *inner = path.split(".")
    return reduce(lambda value, name: value.struct.field(name), inner, pl.col(column))


# Groups of which records lie between the two cuts of a log whose times go back.


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
