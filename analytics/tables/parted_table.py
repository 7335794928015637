"""A table in parts that several processes may have made, each in its order; read in that order.

Of any size: who reads it holds some rows of each part, and no more.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from itertools import chain
from typing import Any, Final, NamedTuple

import polars as pl
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from pyarrow import fs

from analytics.contracts import arrow_schema, in_key_order, polars_rows
from analytics.locations import open_location
from analytics.tables.merged_parts import rows_in_order
from analytics.tables.parquet_frames import errors_of_arrow
from analytics.workspace import reading
from schemas import table


class Order(NamedTuple):
    """The order of a table.

    Attributes:
        columns: What tells it.
        sort: Sorts rows; those that are equal stay as they are to each other.
    """

    columns: Sequence[str]
    sort: Callable[[pl.DataFrame], pl.DataFrame]

    def sorted(self, rows: pa.Table) -> pa.Table:
        """Return rows of Arrow in order."""
        return _as_table(self.sort(polars_rows(rows)), rows.schema)


def _as_table(rows: pl.DataFrame, schema: pa.Schema) -> pa.Table:
    """Return rows with the types that a table has for their columns."""
    types = pa.schema([schema.field(each) for each in rows.columns])
    return rows.to_arrow(compat_level=pl.CompatLevel.oldest()).cast(types)


_AT_ONCE: Final = 64_000
"""So many rows of all parts are held together."""
_NTH: Final = "nth_of_table"
"""Which row of the table it is, as its parts have them, of each of which there may be so many."""
_OF_A_PART: Final = 1 << 40


def by_key(name: str) -> Order:
    """Return the order of a table's key."""
    key = table(name).key
    return Order(key, partial(in_key_order, key=key))


def by_group(rows: pl.DataFrame) -> pl.DataFrame:
    """Sort rows by their group; those of a group stay as they are to each other."""
    return rows.sort("group_id", maintain_order=True)


BY_GROUP: Final = Order(("group_id",), by_group)
"""The order of groups: what each has, which is in one part, stays in the order it is made in."""
AS_THEY_ARE: Final = Order((), lambda rows: rows)
"""No order: of rows that are in one part, or that nobody sorts."""


@dataclass(frozen=True)
class PartedTable:
    """A table.

    Attributes:
        schema: Its columns.
        parts: Its rows, each part in order: held, or the location of a Parquet file. Rows that are
            equal to the order are in one part.
        order: Sorts its rows.
        condition: Which of its rows count; None is all.
        at_once: So many rows of all parts are held together when it is read, about; None where
            they are not long.
    """

    schema: pa.Schema
    parts: Sequence[pa.Table | str]
    order: Order
    condition: pl.Expr | None = None
    at_once: int | None = None

    @classmethod
    def held(cls, rows: pa.Table) -> PartedTable:
        """Return a table that is here, in order."""
        return cls(rows.schema, [rows], AS_THEY_ARE)

    @classmethod
    def of_contract(
        cls, name: str, parts: Sequence[pa.Table | str], order: Order | None = None
    ) -> PartedTable:
        """Return a table with the columns of its contract, in the order of its key by default."""
        return cls(arrow_schema(name), parts, order or by_key(name))

    @property
    def column_names(self) -> list[str]:
        """Its columns."""
        names: list[str] = self.schema.names
        return names

    @cached_property
    def num_rows(self) -> int:
        """How many rows count."""
        if self.condition is None:
            return sum(map(_rows_in, self.parts))
        read = self._asked_for
        return sum(
            rows.num_rows for each in self.parts for rows in self._of_part(each, _AT_ONCE, read)
        )

    @property
    def _asked_for(self) -> list[str]:
        """The columns that the condition is about, each once."""
        names = [] if self.condition is None else self.condition.meta.root_names()
        return list(dict.fromkeys(names))

    def where(self, condition: pl.Expr) -> PartedTable:
        """Return the same table with the rows alone that fulfil a condition, too."""
        both = condition if self.condition is None else self.condition & condition
        return replace(self, condition=both)

    def pieces(self, columns: Sequence[str] | None = None) -> Iterator[pa.Table]:
        """Yield its rows in order, some at a time; at least once.

        Args:
            columns: Those that are needed; None is all.

        Raises:
            WorkspaceError: A part cannot be read.
        """
        wanted = self.column_names if columns is None else list(columns)
        yield self.schema.empty_table().select(wanted)
        at_once = self.at_once or _AT_ONCE
        if len(self.parts) == 1:
            found = self._of_part(self.parts[0], at_once, wanted)
        else:
            read = list(dict.fromkeys([*wanted, *self.order.columns]))
            parts = [partial(self._of_part, each, columns=read) for each in self.parts]
            found = rows_in_order(parts, self.order, at_once)
        for each in found:
            yield each.select(wanted)

    def scan(self, columns: Sequence[str] | None = None) -> Iterator[pa.Table]:
        """Yield its rows, part after part, each in order, some at a time; at least once.

        Args:
            columns: Those that are needed; None is all.

        Raises:
            WorkspaceError: A part cannot be read.
        """
        wanted = self.column_names if columns is None else list(columns)
        yield self.schema.empty_table().select(wanted)
        for each in self.parts:
            yield from self._of_part(each, self.at_once or _AT_ONCE, wanted)

    def folded(
        self,
        fold: Callable[[Iterable[pa.Table]], pa.Table],
        columns: Sequence[str] | None = None,
        later: Sequence[str] = (),
    ) -> pa.Table:
        """Return what a fold keeps of all rows, of what it keeps of each part.

        Args:
            fold: Takes pieces in the order of the table, at least one, and returns rows of them.
            columns: Those that are needed; None is all. The fold has those that tell the order,
                too, and what it returns has both.
            later: Columns that are needed of the rows alone that are kept.

        Raises:
            WorkspaceError: A part cannot be read.
        """
        wanted = self.column_names if columns is None else [*columns, *self.order.columns]
        read = list(dict.fromkeys(wanted))
        lacking = [each for each in dict.fromkeys(later) if each not in read]
        at_once = self.at_once or _AT_ONCE
        nothing = self.schema.empty_table().select(read)
        if lacking:
            nothing = nothing.append_column(_NTH, pa.array([], pa.int64()))
        kept = [
            fold(chain([nothing], self._of_part(each, at_once, nothing.column_names, number)))
            for number, each in enumerate(self.parts)
        ]
        rows = fold([self.order.sorted(pa.concat_tables([nothing, *kept]))])
        return self._with_columns(rows, lacking) if lacking else rows

    def _with_columns(self, rows: pa.Table, columns: Sequence[str]) -> pa.Table:
        """Return rows, of which `_NTH` says where they are, with more of their columns instead."""
        places = rows[_NTH].to_numpy()
        found, order = [self.schema.empty_table().select(list(columns))], []
        for number, part in enumerate(self.parts):
            (mine,) = (places // _OF_A_PART == number).nonzero()
            mine = mine[places[mine].argsort(kind="stable")]
            if len(mine):
                nth = places[mine] % _OF_A_PART
                found.append(self._typed(_rows_at(part, nth.tolist(), columns)))
                order += mine.tolist()
        more = pa.concat_tables(found).take(pc.sort_indices(pa.array(order, pa.int64())))
        for name in columns:
            rows = rows.append_column(name, more[name])
        return rows.drop_columns([_NTH])

    def whole(self, columns: Sequence[str] | None = None) -> pa.Table:
        """Return all of its rows, in order.

        Args:
            columns: Those that are needed; None is all.

        Raises:
            WorkspaceError: A part cannot be read.
        """
        if len(self.parts) == 1 and isinstance(self.parts[0], pa.Table) and self.condition is None:
            return self.parts[0] if columns is None else self.parts[0].select(list(columns))
        return self._together(lambda part, read: self._of_part(part, _AT_ONCE, read), columns)

    def few(self, columns: Sequence[str] | None = None) -> pa.Table:
        """Return all of its rows, in order, where few of many count.

        What the condition is not about is decoded, of files, for the rows alone that fulfil it.

        Args:
            columns: Those that are needed; None is all.

        Raises:
            WorkspaceError: A part cannot be read.
        """
        return self._together(self._few_of_part, columns)

    def few_by_part(self, columns: Sequence[str] | None = None) -> Iterator[pa.Table]:
        """Yield the same part after part, each in order; at least once.

        Raises:
            WorkspaceError: A part cannot be read.
        """
        wanted = self.column_names if columns is None else list(columns)
        yield self.schema.empty_table().select(wanted)
        for each in self.parts:
            yield from self._few_of_part(each, wanted)

    def _together(
        self,
        read_part: Callable[[pa.Table | str, Sequence[str]], Iterator[pa.Table]],
        columns: Sequence[str] | None,
    ) -> pa.Table:
        """Return what is read of each part, in the order of the table."""
        wanted = self.column_names if columns is None else list(columns)
        # A part alone is in order.
        telling = self.order.columns if len(self.parts) > 1 else ()
        read = list(dict.fromkeys([*wanted, *telling]))
        found = [rows for each in self.parts for rows in read_part(each, read)]
        rows = pa.concat_tables(found or [self.schema.empty_table().select(wanted)])
        return (self.order.sorted(rows) if len(found) > 1 and telling else rows).select(wanted)

    def first(self, most: int) -> pa.Table:
        """Return its first rows."""
        # Columns alone are often asked for: no part is read for that.
        if not most:
            return self.schema.empty_table()
        found = []
        for each in self.parts:
            left = most
            for rows in self._of_part(each, most):
                found.append(rows.slice(0, left))
                left -= rows.num_rows
                if left <= 0:
                    break
        rows = pa.concat_tables([self.schema.empty_table(), *found])
        return self.order.sorted(rows).slice(0, most)

    def copied(self, folder: str) -> PartedTable:
        """Return the same table, with copies of its files in a folder that is there.

        Raises:
            WorkspaceError: A part cannot be read.
        """
        parts = [
            _copy(each, f"{folder}/{number}.parquet") if isinstance(each, str) else each
            for number, each in enumerate(self.parts)
        ]
        return replace(self, parts=parts)

    def _of_part(
        self,
        part: pa.Table | str,
        most: int,
        columns: Sequence[str] | None = None,
        number: int = 0,
    ) -> Iterator[pa.Table]:
        """Yield the rows of a part that count, some at a time, in order.

        Args:
            part: The part.
            most: So many rows at a time.
            columns: Those that are needed, `_NTH` may be among them; None is all of the table.
            number: Of the part.
        """
        names = self.column_names if columns is None else columns
        asked = self._asked_for
        read = [each for each in dict.fromkeys([*names, *asked]) if each != _NTH]
        rows = (
            _held(part.select(read), most)
            if isinstance(part, pa.Table)
            else _stored(part, most, read)
        )
        if _NTH in names:
            rows = _numbered(rows, number * _OF_A_PART)
        for each in rows:
            counted = each
            if self.condition is not None:
                counts = polars_rows(each.select(asked)).select(self.condition).to_series()
                counted = each.filter(pa.chunked_array([counts.to_arrow()]))
            yield self._typed(counted.select(list(names)))

    def _few_of_part(self, part: pa.Table | str, columns: Sequence[str]) -> Iterator[pa.Table]:
        """Yield the rows of a part that count, in order."""
        if isinstance(part, str) and self.condition is not None:
            yield self._typed(_matching(part, self.condition, columns))
        else:
            yield from self._of_part(part, _AT_ONCE, columns)

    def _typed(self, rows: pa.Table) -> pa.Table:
        # What tells the order may be in the files, and not among the columns of the table.
        types = [
            self.schema.field(each.name) if each.name in self.schema.names else each
            for each in rows.schema
        ]
        return rows.cast(pa.schema(types))


def _rows_in(part: pa.Table | str) -> int:
    if isinstance(part, pa.Table):
        return int(part.num_rows)
    filesystem, path = open_location(part)
    with reading(path), filesystem.open_input_file(path) as source:
        return int(pq.read_metadata(source).num_rows)


def _copy(part: str, location: str) -> str:
    source, path = open_location(part)
    destination, place = open_location(location)
    with reading(path):
        fs.copy_files(path, place, source_filesystem=source, destination_filesystem=destination)
    return location


def _held(rows: pa.Table, most: int) -> Iterator[pa.Table]:
    for start in range(0, rows.num_rows, most):
        yield rows.slice(start, most)


def _stored(part: str, most: int, columns: Sequence[str]) -> Iterator[pa.Table]:
    filesystem, path = open_location(part)
    with reading(path), filesystem.open_input_file(path) as source:
        # A store is asked once for the columns of a row group, not once for each: those are held.
        is_here = isinstance(filesystem, fs.LocalFileSystem)
        file: Any = pq.ParquetFile(source, pre_buffer=not is_here)
        every = list(range(file.num_row_groups))
        for groups in [every] if is_here else [[each] for each in every]:
            for batch in file.iter_batches(most, row_groups=groups, columns=list(columns)):
                # Files have columns in an order of their own.
                yield pa.Table.from_batches([batch]).select(list(columns))


def _numbered(pieces: Iterator[pa.Table], first: int) -> Iterator[pa.Table]:
    """Yield pieces with the number of each row."""
    for rows in pieces:
        behind = first + rows.num_rows
        numbers = pl.int_range(first, behind, dtype=pl.Int64, eager=True)
        yield rows.append_column(_NTH, numbers.to_arrow())
        first = behind


def _rows_at(part: pa.Table | str, nth: Sequence[int], columns: Sequence[str]) -> pa.Table:
    """Return the rows of a part by their numbers, which ascend."""
    if isinstance(part, pa.Table):
        return part.select(list(columns)).take(pa.array(nth, pa.int64()))
    return _matching(part, pl.col(_NTH).is_in(list(nth)), columns)


def _matching(part: str, condition: pl.Expr, columns: Sequence[str]) -> pa.Table:
    """Return the rows of a file that fulfil a condition; `_NTH` is a column of it.

    Arrow would decode all columns of a row group for one of its rows.
    """
    filesystem, path = open_location(part)
    is_here = isinstance(filesystem, fs.LocalFileSystem)
    with reading(path), errors_of_arrow():
        source = path if is_here else filesystem.open_input_file(path).read()
        rows = pl.scan_parquet(source, glob=False, row_index_name=_NTH)
        found = rows.filter(condition).select(columns).collect()
        return found.to_arrow(compat_level=pl.CompatLevel.oldest())


class PartedTables(Mapping[str, pa.Table]):
    """Tables by name: each is read wholly when it is asked for, or in pieces."""

    def __init__(self, tables: Mapping[str, PartedTable]) -> None:
        self._tables = tables

    def __getitem__(self, name: str) -> pa.Table:
        return self._tables[name].whole()

    def __iter__(self) -> Iterator[str]:
        return iter(self._tables)

    def __len__(self) -> int:
        return len(self._tables)

    def parted(self, name: str) -> PartedTable:
        """Return a table whose rows may be too many to be held."""
        return self._tables[name]


def parted(tables: Mapping[str, pa.Table], name: str) -> PartedTable:
    """Return one of several tables as what can be read in pieces."""
    if isinstance(tables, PartedTables):
        return tables.parted(name)
    return PartedTable.held(tables[name])
