"""What a page is made of: tables of an audited workspace, and what its files say."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias

import polars as pl
import pyarrow as pa
import pyarrow.compute as pc

from reports.layout.section import Fold, Order, first_in_order
from schemas import table

if TYPE_CHECKING:
    from schemas.manifest import Manifest

Condition: TypeAlias = pl.Expr
"""Which rows of a table are asked for."""


def is_one_of(column: str, values: Iterable[object]) -> Condition:
    """Return the condition that a text of a row is one of some."""
    return pl.col(column).is_in(pl.Series(list(dict.fromkeys(values)), dtype=pl.String).implode())


def is_of(groups: Iterable[object]) -> Condition:
    """Return the condition that a row is of one of some groups."""
    return is_one_of("group_id", groups)


def fulfilling(rows: pa.Table, where: Condition) -> pa.Table:
    """Return the rows of Arrow that fulfil a condition."""
    needed = list(dict.fromkeys(where.meta.root_names()))
    is_wanted = pl.DataFrame(pl.from_arrow(rows.select(needed))).select(where).to_series()
    return rows.filter(pa.chunked_array([is_wanted.to_arrow()]))


def _is_among(first: pa.Table, by: tuple[str, str], most: int) -> Condition | None:
    """Return what is so of rows that may be among the first; None where that says nothing.

    Args:
        first: The first rows.
        by: The column that they are the first by, and "ascending" or "descending".
        most: So many rows are wanted.
    """
    name, direction = by
    last = first[name][most - 1].as_py() if first.num_rows >= most else None
    # Null comes last, and what is not a number before it.
    if last is None or last != last:  # noqa: PLR0124
        return None
    column, least = pl.col(name), pl.lit(last)
    return column >= least if direction == "descending" else column <= least


class Tables(Protocol):
    """Tables by name, read where they are asked for: some have a row for each committed offset."""

    def __contains__(self, name: object, /) -> bool:
        """Return whether a table is there."""

    def read(self, name: str, columns: Sequence[str], where: Condition | None = None) -> pa.Table:
        """Return columns of a table that is there, all where none is named.

        Args:
            name: Which one.
            columns: Those that are looked at; none is all of them.
            where: Which rows; None is all of them.
        """

    def first(self, name: str, columns: Sequence[str], most: int) -> pa.Table:
        """Return the first rows of a table that is there, in its order."""

    def pieces(
        self, name: str, columns: Sequence[str], where: Condition | None = None
    ) -> Iterator[pa.Table]:
        """Yield the rows of a table that is there, some at a time; at least once."""

    def in_order(self, name: str, columns: Sequence[str]) -> Iterator[pa.Table]:
        """Yield the rows of a table that is there in its order, some at a time; at least once."""

    def folded(
        self, name: str, fold: Fold, columns: Sequence[str], later: Sequence[str] = ()
    ) -> pa.Table:
        """Return what a fold keeps of a table that is there."""

    def count(self, name: str) -> int:
        """Return how many rows a table has that is there."""

    def of_group(self, name: str, group: str) -> pa.Table:
        """Return the rows of a group that the page shows, of a table that is there."""


class HeldTables(dict[str, pa.Table]):
    """Tables in memory."""

    def read(self, name: str, columns: Sequence[str], where: Condition | None = None) -> pa.Table:
        """Return columns of a table, all where none is named; of the rows that are asked for.

        Raises:
            KeyError: It has no such column.
        """
        rows = self[name] if where is None else fulfilling(self[name], where)
        return rows.select(list(columns)) if columns else rows

    def first(self, name: str, columns: Sequence[str], most: int) -> pa.Table:
        """Return the first rows of a table."""
        return self.read(name, columns).slice(0, most)

    def pieces(
        self, name: str, columns: Sequence[str], where: Condition | None = None
    ) -> Iterator[pa.Table]:
        """Yield the rows of a table."""
        yield self.read(name, columns, where)

    def in_order(self, name: str, columns: Sequence[str]) -> Iterator[pa.Table]:
        """Yield the rows of a table."""
        return self.pieces(name, columns)

    def folded(
        self, name: str, fold: Fold, columns: Sequence[str], later: Sequence[str] = ()
    ) -> pa.Table:
        """Return what a fold keeps of a table."""
        return fold([self.read(name, list(dict.fromkeys([*columns, *later])))])

    def count(self, name: str) -> int:
        """Return how many rows a table has."""
        return int(self[name].num_rows)

    def of_group(self, name: str, group: str) -> pa.Table:
        """Return the rows of a group."""
        return self[name].filter(pc.field("group_id") == group)


@dataclass(frozen=True)
class WorkspaceTables:
    """The tables by their names, the manifest and the summary of an audit.

    Attributes:
        tables: Those that are there.
        manifest: Of the workspace.
        summary: What `summary.json` says.
    """

    tables: Tables
    manifest: Manifest
    summary: Mapping[str, Any]

    def has(self, name: str) -> bool:
        """Return whether a table is there."""
        return name in self.tables

    def rows(
        self, name: str, columns: Sequence[str] = (), where: Condition | None = None
    ) -> pa.Table:
        """Return a table; one that is not there has no rows.

        Args:
            name: Which one.
            columns: Those that are looked at; none is all of them.
            where: Which rows; None is all of them.
        """
        if name in self.tables:
            return self.tables.read(name, columns, where)
        names = columns or [each.name for each in table(name).columns]
        return pa.schema([(each, pa.null()) for each in names]).empty_table()

    def first(self, name: str, most: int, columns: Sequence[str] = ()) -> pa.Table:
        """Return the first rows of a table, which may be too large to be held, in its order."""
        return self.tables.first(name, columns, most) if name in self.tables else self.rows(name)

    def in_order(self, name: str, columns: Sequence[str]) -> Iterator[pa.Table]:
        """Yield the rows of a table of any size in its order, some at a time; at least once.

        Args:
            name: Which one; one that is not there has no rows.
            columns: Those that are looked at.
        """
        there = name in self.tables
        return self.tables.in_order(name, columns) if there else iter([self.rows(name, columns)])

    def scan(
        self, name: str, columns: Sequence[str], where: Condition | None = None
    ) -> Iterator[pa.Table]:
        """Yield the rows of a table of any size in any order, some at a time; at least once.

        Args:
            name: Which one; one that is not there has no rows.
            columns: Those that are looked at.
            where: Which rows, few of many; None is all of them.
        """
        if name not in self.tables:
            return iter([self.rows(name, columns)])
        return self.tables.pieces(name, columns, where)

    def folded(
        self, name: str, fold: Fold, columns: Sequence[str], later: Sequence[str] = ()
    ) -> pa.Table:
        """Return what a fold keeps of a table of any size: of its rows, and of their order.

        Args:
            name: Which one; one that is not there has no rows.
            fold: Takes rows in their order, some at a time.
            columns: Those that it looks at.
            later: Those that are needed of the rows that it keeps.
        """
        if name not in self.tables:
            return fold([self.rows(name, list(dict.fromkeys([*columns, *later])))])
        return self.tables.folded(name, fold, columns, later)

    def largest(
        self,
        name: str,
        order: Order,
        most: int,
        columns: Sequence[str],
        where: Condition | None = None,
    ) -> pa.Table:
        """Return the first rows of a table in an order of one's own.

        Args:
            name: Of a table that is there.
            order: Columns with "ascending" or "descending".
            most: So many rows.
            columns: Those that are looked at.
            where: Which rows; None is all of them.
        """
        # What decides is read alone: other columns are needed of few rows.
        telling = [order[0][0], *(where.meta.root_names() if where is not None else ())]
        pieces = self.tables.pieces(name, list(dict.fromkeys(telling)))
        wanted = (each if where is None else fulfilling(each, where) for each in pieces)
        first = first_in_order(wanted, order[:1], most)
        is_wanted = [each for each in (where, _is_among(first, order[0], most)) if each is not None]
        rows = self.tables.pieces(
            name, columns, pl.all_horizontal(is_wanted) if is_wanted else None
        )
        return first_in_order(rows, order, most)

    def count(self, name: str) -> int:
        """Return how many rows a table has; 0 where it is not there."""
        return self.tables.count(name) if name in self.tables else 0

    def of_group(self, name: str, group: str) -> pa.Table:
        """Return the rows of one of the groups that the page shows."""
        return self.tables.of_group(name, group) if name in self.tables else self.rows(name)
