"""What rows of groups are read of: files that may say of which groups they are, and other rows.

Which rows of a table are wanted, as some of its columns tell.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import chain
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import polars as pl
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from pyarrow.fs import LocalFileSystem

from analytics.contracts import arrow_rows, polars_rows
from analytics.locations import open_location
from analytics.tables.buckets import GroupBucket
from analytics.tables.parquet_frames import frames_of_file
from analytics.tables.parted_table import PartedTable
from analytics.tables.stored_tables import EVERY, EVERYTHING
from analytics.workspace import reading

if TYPE_CHECKING:
    from analytics.engine.part_runs import RunTasks
    from analytics.replayed.records import RecordGroups
    from analytics.tables.stored_tables import StoredTables


class RowCondition(NamedTuple):
    """Which rows are wanted.

    Attributes:
        columns: The columns that tell it; none where all rows are.
        mask: Says it of each of some rows, of at least one, with those columns; for Spark a
            function of a module, or a partial of one.
    """

    columns: Sequence[str]
    mask: Callable[[pa.Table], pa.ChunkedArray]

    def of(self, rows: pa.Table) -> pa.Table:
        """Return those of some rows that are wanted."""
        return rows.filter(self.mask(rows)) if rows.num_rows and self.columns else rows

    def of_frame(self, rows: pl.DataFrame) -> pl.DataFrame:
        """Return the same: what is not wanted never becomes a table of Arrow."""
        if rows.is_empty() or not self.columns:
            return rows
        return rows.filter(pl.Series(self.mask(arrow_rows(rows.select(self.columns)))))


GROUP: Final = "group_id"
"""The column that says of which group a row is."""


class GroupRows(NamedTuple):
    """Rows that are of groups, and nobody knows where those of which groups are.

    Attributes:
        pieces: The rows, some after the others; at least one frame, possibly without rows.
        group: The id of the group of a row.
        left_out: Columns that say of which group a row is, and nothing more.
    """

    pieces: Iterable[pl.DataFrame]
    group: pl.Expr
    left_out: Sequence[str] = ()


class TaskRows(ABC):
    """Rows that are of groups, and are laid out by tasks where there are any.

    Attributes:
        group: The id of the group of a row.
        left_out: Columns that say of which group a row is, and nothing more.
    """

    group: pl.Expr
    left_out: Sequence[str] = ()

    @abstractmethod
    def pieces(self) -> Iterator[pl.DataFrame]:
        """Yield the rows, some after the others; at least one frame."""

    @abstractmethod
    def lay_out(self, folder: str, name: str, parts: int, run_tasks: RunTasks) -> LaidOut:
        """Lay the rows out in tasks, as `BucketFiles` does, by a hash of their groups."""


class LaidOut(NamedTuple):
    """Rows that tasks have laid out.

    Attributes:
        nothing: Such rows, none of them.
        attempts: What names of files end with that count.
    """

    nothing: pl.DataFrame
    attempts: frozenset[str]


@dataclass(frozen=True)
class StoredGroups:
    """Rows of a table of a workspace that has `group_id` among its columns.

    Attributes:
        tables: Where it is, as far as groups are wanted.
        name: Its name.
        columns: Those that are read.
        where: Which rows are; None is all.
        condition: Which of those that are read are wanted; None is all.
        left_out: Columns that say of which group a row is, and nothing more.
        paths: Its files that are read; None is all.
    """

    tables: StoredTables
    name: str
    columns: Sequence[str]
    where: pc.Expression | None = None
    condition: RowCondition | None = None
    left_out: Sequence[str] = ()
    paths: tuple[str, ...] | None = None

    def by_file(self) -> Iterator[GroupFile]:
        """Yield what each file says of its rows.

        Raises:
            WorkspaceError: A file is damaged.
        """
        filesystem = self.tables.workspace.filesystem
        for path in self.tables.files(self.name):
            with reading(path), filesystem.open_input_file(path) as source:
                yield _file_of(source, replace(self, paths=(path,)))

    def matched(self) -> StoredGroups:
        """Return the same, with patterns matched to the names there are: once, not file by file."""
        if self.tables.selection == EVERYTHING:
            return self
        everything = replace(self.tables, selection=EVERYTHING)
        return replace(self, tables=everything, where=self.tables.condition(self.name, self.where))

    def num_rows(self, files: Sequence[GroupFile]) -> int:
        """Return how many rows are wanted, of all that are in its files."""
        if self.where is None and self.tables.selection == EVERYTHING:
            return sum(each.rows for each in files)
        return self.tables.count(self.name, where=self.where)

    def together(self, others: Sequence[StoredGroups]) -> StoredGroups:
        """Return what reads the files of this and of others."""
        paths = chain.from_iterable(each.paths or () for each in (self, *others))
        return replace(self, paths=tuple(paths))

    def none_of_them(self) -> StoredGroups:
        """Return what reads no file."""
        return replace(self, paths=())

    def pieces(self) -> Iterator[pl.DataFrame]:
        """Yield the rows, some after the others; at least one frame."""
        where = EVERY if self.where is None else self.where
        filesystem = self.tables.workspace.filesystem
        has_all = self.where is None and self.tables.selection == EVERYTHING
        if not (has_all and isinstance(filesystem, LocalFileSystem)):
            for each in self.tables.pieces(self.name, self.columns, where, self.paths):
                yield polars_rows(each if self.condition is None else self.condition.of(each))
            return
        nothing = next(self.tables.pieces(self.name, self.columns, files=()))
        paths = self.tables.files(self.name) if self.paths is None else self.paths
        yield from _frames(polars_rows(nothing), paths, self.condition)


@dataclass(frozen=True)
class PartedGroups:
    """Rows of a table in parts that has `group_id` among its columns.

    Attributes:
        table: The table.
        columns: Those that are read.
        condition: Which of those that are read are wanted; None is all.
        left_out: Columns that say of which group a row is, and nothing more.
    """

    table: PartedTable
    columns: Sequence[str]
    condition: RowCondition | None = None
    left_out: Sequence[str] = ()

    def by_file(self) -> Iterator[GroupFile]:
        """Yield what each part says of its rows."""
        for part in self.table.parts:
            only = replace(self, table=replace(self.table, parts=[part]))
            if not isinstance(part, str):
                yield GroupFile(None, part.num_rows, only)
                continue
            filesystem, path = open_location(part)
            with reading(path), filesystem.open_input_file(path) as source:
                yield _file_of(source, only)

    def num_rows(self, files: Sequence[GroupFile]) -> int:
        """Return how many rows are in its parts."""
        return sum(each.rows for each in files)

    def together(self, others: Sequence[PartedGroups]) -> PartedGroups:
        """Return what reads the parts of this and of others."""
        parts = chain.from_iterable(each.table.parts for each in (self, *others))
        return replace(self, table=replace(self.table, parts=list(parts)))

    def none_of_them(self) -> PartedGroups:
        """Return what reads no part."""
        return replace(self, table=replace(self.table, parts=[]))

    def pieces(self) -> Iterator[pl.DataFrame]:
        """Yield the rows, some after the others; at least one frame."""
        table, condition = self.table, self.condition
        places = [open_location(each) for each in table.parts if isinstance(each, str)]
        are_here = all(isinstance(filesystem, LocalFileSystem) for filesystem, _ in places)
        if table.condition is None and are_here and len(places) == len(table.parts):
            nothing = polars_rows(table.schema.empty_table().select(self.columns))
            yield from _frames(nothing, [path for _, path in places], condition)
            return
        for each in table.scan(self.columns):
            yield polars_rows(each if condition is None else condition.of(each))


def _frames(
    nothing: pl.DataFrame, paths: Sequence[str], condition: RowCondition | None
) -> Iterator[pl.DataFrame]:
    """Yield the rows of files on a disk, some after the others; at least one frame."""
    yield nothing
    for path in paths:
        with reading(path):
            for each in frames_of_file(path, nothing.columns):
                rows = each.cast(nothing.schema)
                yield rows if condition is None else condition.of_frame(rows)


GroupFiles = StoredGroups | PartedGroups
"""Rows in files that may say of which groups they are."""


def stored_rows(
    tables: StoredTables, name: str, columns: Sequence[str], where: pc.Expression | None = None
) -> GroupRows:
    """Return rows of a table of a workspace, to be laid out with others."""
    return GroupRows(StoredGroups(tables, name, columns, where).pieces(), pl.col(GROUP))


class GroupFile(NamedTuple):
    """What a file says of its rows.

    Attributes:
        groups: Of which groups they are; None does not say.
        rows: How many there are.
        source: What reads this file alone.
    """

    groups: GroupBucket | None
    rows: int
    source: Any


def _file_of(source: pa.NativeFile, files: GroupFiles) -> GroupFile:
    footer = pq.read_metadata(source)
    return GroupFile(GroupBucket.of_file(footer.metadata), footer.num_rows, files)


def whole(source: GroupRows | GroupFiles | RecordGroups | TaskRows) -> pl.DataFrame:
    """Return all rows together."""
    pieces = source.pieces if isinstance(source, GroupRows) else source.pieces()
    return pl.concat(pieces).drop(source.left_out)
