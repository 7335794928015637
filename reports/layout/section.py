"""One table of an answer: rows, and what is shown of them.

Of tables that are longer than a person reads: the worst rows, and how many there are.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Final, Protocol, runtime_checkable

import polars as pl
import pyarrow as pa
import pyarrow.compute as pc

from reports.layout.cells import durations, signed
from reports.layout.output_format import OutputFormat
from schemas import table
from schemas.shown import MAIN, ShownColumn, View, signs_of

ROWS = "rows"
MARKS = ("complete", "missing")
"""Whether a row tells all, and what is lacking where it does not."""

MOST: Final = 1_000
"""A table of more rows is summed up."""
SHOWN: Final = 100
Order = Sequence[tuple[str, str]]
"""Columns with "ascending" or "descending"; nulls come last."""


@dataclass(frozen=True)
class Section:
    """Rows under one set of columns.

    Attributes:
        rows: Has the columns, and possibly others.
        heads: The head of each column that is shown, by its name, in order.
        also: Columns that formats for programs have besides.
        name: What `--table` calls it.
        key: Where JSON has it: `rows` is the main table. Sections with the same key are one list
            there, and one table in CSV.
        title: A line above it in text and Markdown.
        problem: A column of booleans: what went wrong. Such rows are marked and come first.
        spare: Columns that text leaves out, one by one, where it would become too wide.
        more: How many rows the table has besides, which are not here and not shown.
        is_marked: Rows have `complete`: where one is not, text and Markdown have that column, too.
        bounds: By a column whose values text and Markdown have with the sign of their bound, the
            column that says whether each is exact.
    """

    rows: pa.Table
    heads: Mapping[str, str]
    also: Sequence[str] = ()
    name: str = ROWS
    key: str = ROWS
    title: str = ""
    problem: str | None = None
    spare: Sequence[str] = ()
    more: int = 0
    is_marked: bool = False
    bounds: Mapping[str, str] = field(default_factory=dict)

    @property
    def for_people(self) -> Section:
        """The section as text and Markdown have it: it says what is not complete, or a bound."""
        shown = replace(self, rows=signed(self.rows, self.bounds))
        if not self.is_marked or pc.all(self.rows[MARKS[0]]).as_py() in {True, None}:
            return shown
        return replace(shown, heads={**self.heads, MARKS[0]: "COMPLETE"})

    @property
    def names(self) -> list[str]:
        """The columns that formats for programs have."""
        return [*self.heads, *self.also]


class Rows(Protocol):
    """A table in order that may be too large to be held."""

    @property
    def num_rows(self) -> int:
        """How many rows it has."""

    def pieces(self, columns: Sequence[str] | None = None) -> Iterator[pa.Table]:
        """Yield its rows in order, some at a time; at least once."""

    def first(self, most: int) -> pa.Table:
        """Return its first rows."""

    def whole(self) -> pa.Table:
        """Return all of its rows."""


@runtime_checkable
class RowsInParts(Rows, Protocol):
    """Rows that lie in parts, each in order: what needs no order of all reads part after part."""

    def scan(self, columns: Sequence[str] | None = None) -> Iterator[pa.Table]:
        """Yield its rows, those of a part in order, some at a time; at least once."""

    def folded(self, fold: Fold, columns: Sequence[str] | None = None) -> pa.Table:
        """Return what a fold keeps of all rows, of what it keeps of each part.

        Of columns that are chosen the fold has those, too, that tell the order.
        """


Fold = Callable[[Iterable[pa.Table]], pa.Table]
"""Takes pieces of a table in its order, at least one, and returns the rows that it keeps.

What it keeps of all has to be among what it keeps of some.
"""


def scanned(rows: Rows, columns: Sequence[str] | None = None) -> Iterator[pa.Table]:
    """Yield the rows of a table in any order, some at a time; at least once."""
    return rows.scan(columns) if isinstance(rows, RowsInParts) else rows.pieces(columns)


def folded(rows: Rows, fold: Fold, columns: Sequence[str] | None = None) -> pa.Table:
    """Return what a fold keeps of a table that may be too large to be held.

    Args:
        rows: The table.
        fold: What it keeps of some rows.
        columns: Those that it looks at; None is all. There may be more.
    """
    if isinstance(rows, RowsInParts):
        return rows.folded(fold, columns)
    return fold(rows.pieces(columns))


@dataclass(frozen=True)
class LongSection:
    """A section of a table that may be too large to be held.

    Attributes:
        rows: The table.
        make: Makes the section of some of its rows.
        only_problems: Only rows that say that something went wrong.
    """

    rows: Rows
    make: Callable[[pa.Table], Section]
    only_problems: bool = False

    @property
    def name(self) -> str:
        """What `--table` calls it."""
        return self.without_rows.name

    @property
    def key(self) -> str:
        """Where JSON has it."""
        return self.without_rows.key

    @cached_property
    def without_rows(self) -> Section:
        """The section of none of its rows."""
        return self.make(self.rows.first(0))

    def pieces(self) -> Iterator[Section]:
        """Yield the section in pieces, in order."""
        for rows in self.rows.pieces():
            piece = self.make(rows)
            if self.only_problems:
                piece = replace(piece, rows=piece.rows.filter(problems_of(piece)))
            yield piece

    @property
    def short(self) -> Section:
        """The whole section."""
        return self.make(self.rows.whole())

    def worst(self, most: int | None) -> Section:
        """Return so many rows, those that went wrong first; None is all that went wrong."""
        worst = folded(self.rows, lambda pieces: self._worst_of(pieces, most))
        return self.make(worst if most is None else worst.slice(0, most))

    def _worst_of(self, pieces: Iterable[pa.Table], most: int | None) -> pa.Table:
        wrong: list[pa.Table] = []
        others: list[pa.Table] = []
        for rows in pieces:
            is_wrong = problems_of(self.make(rows))
            _fill(wrong, rows.filter(is_wrong), most)
            if not self.only_problems:
                _fill(others, rows.filter(pc.invert(is_wrong)), most)
            if most is not None and sum(each.num_rows for each in wrong) >= most:
                # No other row goes before these.
                break
        return pa.concat_tables([*wrong, *others])


def _fill(held: list[pa.Table], rows: pa.Table, most: int | None) -> None:
    """Hold no more rows than are wanted; a slice would hold the memory of all others, too."""
    if most is None:
        held.append(rows)
        return
    room = max(most - sum(each.num_rows for each in held), 0)
    if room or not held:
        held.append(rows.take(pa.array(range(min(room, rows.num_rows)), pa.int64())))


def first_rows(pieces: Iterable[pa.Table], most: int) -> pa.Table:
    """Return the first rows of pieces of a table, at least one; no more of them are read."""
    held: list[pa.Table] = []
    for rows in pieces:
        _fill(held, rows, most)
        if sum(each.num_rows for each in held) >= most:
            break
    return pa.concat_tables(held)


def problems_of(section: Section) -> pa.ChunkedArray:
    """Return which rows say that something went wrong: none of a table that marks none."""
    if section.problem is None:
        return pa.chunked_array([pa.repeat(pa.scalar(value=False), section.rows.num_rows)])
    return pc.fill_null(section.rows[section.problem].cast(pa.bool_()), fill_value=False)


def raw_section(rows: pa.Table, name: str) -> Section:
    """Return a table as it is, for programs: under its name, with all its columns."""
    heads = dict(zip(rows.column_names, rows.column_names, strict=True))
    return Section(rows, heads, name=name, key=name)


def worst_rows(rows: Rows, order: Order, wanted: str, most: int | None = None) -> pa.Table:
    """Return the worst rows of a table that is too long, for people; else all of them.

    Who says how many rows, in which order, or which of them, gets that.
    """
    if not is_summed_up(rows, wanted, most):
        return _asked_rows(rows, wanted)
    return worst_of_all(rows, order)


def is_summed_up(rows: Rows, output_format: str, most: int | None = None) -> bool:
    """Return whether people are shown the worst rows of a table instead of all."""
    return rows.num_rows > (MOST if most is None else most) and _is_up_to_us(output_format)


def worst_of_all(
    rows: Rows, order: Order, with_order: Callable[[pa.Table], pa.Table] = lambda rows: rows
) -> pa.Table:
    """Return the worst rows of a table that may be too large to be held; of equal ones the first.

    Args:
        rows: The table.
        order: By which columns they are the worst.
        with_order: Adds these to rows that have them not.
    """
    names = rows.first(0).column_names

    def worst(pieces: Iterable[pa.Table]) -> pa.Table:
        return first_in_order(map(with_order, pieces), order, SHOWN).select(names)

    return with_order(folded(rows, worst))


def first_in_order(pieces: Iterable[pa.Table], order: Order, most: int) -> pa.Table:
    """Return the first rows of pieces of a table, at least one, in an order; equal ones stay."""
    held: list[pa.Table] = []
    for each in pieces:
        more = _rivals(each, held[0], order, most) if held else each
        rows = pa.concat_tables([*held, more])
        # Only what is returned is gathered.
        held = [rows.take(pc.sort_indices(rows, list(order)).slice(0, most))]
    return held[0]


def _rivals(rows: pa.Table, held: pa.Table, order: Order, most: int) -> pa.Table:
    """Return the rows that may come before the last of so many that are held, or are equal to it.

    To compare numbers takes a tenth of the time of sorting by names what they leave out.
    """
    name, direction = order[0]
    kind = rows.schema.field(name).type
    if held.num_rows < most or not (pa.types.is_integer(kind) or pa.types.is_timestamp(kind)):
        return rows
    last = held[name][most - 1]
    if not last.is_valid:
        return rows
    is_before = pc.greater_equal if direction == "descending" else pc.less_equal
    return rows.filter(is_before(rows[name], last))


def first_of_each(
    pieces: Iterable[pa.Table], of: str, most: int, order: Order | None = None
) -> pa.Table:
    """Return the first rows of each value of a column, in their order.

    Args:
        pieces: Of a table, at least one; in its order where there is no other.
        of: The column.
        most: So many rows of each value.
        order: Which rows come first; None is those that do in the table.
    """
    held: list[pa.Table] = []
    for each in pieces:
        rows = pa.concat_tables([*held, each])
        if order is not None:
            rows = rows.filter(_may_be_first(rows, of, most, order[0]))
            rows = rows.take(pc.sort_indices(rows, list(order)))
        values = pl.DataFrame({of: pl.from_arrow(rows[of])}).with_row_index("nth_row")
        first = values.group_by(of).head(most)["nth_row"].sort()
        # Only what is returned is gathered.
        held = [rows.take(first.to_arrow())]
    return held[0]


def _may_be_first(rows: pa.Table, of: str, most: int, by: tuple[str, str]) -> pa.ChunkedArray:
    """Return which rows may be among the first of their value by the first column of an order."""
    name, direction = by
    values = pl.DataFrame({"of": pl.from_arrow(rows[of]), "by": pl.from_arrow(rows[name])})
    place = pl.col("by").rank("min", descending=direction == "descending").over("of")
    # Null comes last.
    known = pl.col("by").count().over("of")
    may_be = pl.when(pl.col("by").is_null()).then(known < most).otherwise(place <= most)
    return pa.chunked_array([values.select(may_be).to_series().to_arrow()])


def words_in(rows: Rows, column: str) -> set[str | None]:
    """Return the values of a column of a table that may be too large to be held."""
    return {
        word for piece in scanned(rows, [column]) for word in pc.unique(piece[column]).to_pylist()
    }


def of_groups(rows: Rows, groups: pa.ChunkedArray | pa.Array) -> pa.Table:
    """Return the rows of some groups of a table that may be too large to be held."""
    return pa.concat_tables(
        each.filter(pc.is_in(each["group_id"], groups)) for each in rows.pieces()
    )


def _asked_rows(rows: Rows, output_format: str) -> pa.Table:
    """Return rows in the order of their table: so many as are asked for, or all to pick from."""
    if isinstance(output_format, OutputFormat) and output_format.top is not None:
        is_picked = output_format.sort is not None or output_format.only_problems
        return rows.whole() if is_picked else rows.first(output_format.top)
    return rows.whole()


def summed_up(counts: Mapping[str, tuple[int, int]]) -> list[str]:
    """Return a line that says what is left out, none where nothing is.

    Args:
        counts: By name of a table, how many rows are shown and how many there are.
    """
    told = [
        f"{shown:,} of {all_:,} {name}" for name, (shown, all_) in counts.items() if shown < all_
    ]
    if not told:
        return []
    return [
        f"the worst are shown: {', '.join(told)}",
        "--top N shows more, --format csv all; --out DIR keeps the tables",
    ]


def _is_up_to_us(wanted: str) -> bool:
    if not isinstance(wanted, OutputFormat):
        return wanted not in ("json", "csv")
    is_said = wanted.top is not None or wanted.sort is not None or wanted.only_problems
    return not (wanted.is_for_programs or is_said)


# A section of a table as its contract shows it: heads, order, what is left out first, and texts.
#
# The one place where reports get heads from: `schemas/tables/` has them (`schemas.shown`).

_SIGNS: Final = signs_of("duration")
"""What stands before a length of time."""
_NEVER: Final = "never"
_DUE: Final = "due"


def table_section(
    rows: pa.Table,
    of: str,
    name: str | None = None,
    *,
    view: str = MAIN,
    title: str = "",
    problem: str | None = None,
    also: Sequence[str] | None = None,
) -> Section:
    """Return rows of a table as a view of it shows them; people see which are not complete.

    Args:
        rows: Has the columns; those that are derived by a form are made where they are not there.
        of: The table, by the name of its contract.
        name: What `--table` calls it, and where JSON has it; the table's name by default.
        view: Which columns are shown.
        title: A line above it.
        problem: A column of booleans: what went wrong.
        also: What formats for programs have besides; by default all other columns of the table.

    Raises:
        KeyError: There is no such table or view.
    """
    shown = table(of).view(view)
    if also is None:
        hidden = {problem, *shown.heads}
        also = [each for each in rows.column_names if each not in hidden]
    return Section(
        with_derived(rows, shown),
        shown.heads,
        also,
        name=name or of,
        key=name or of,
        title=title,
        problem=problem,
        spare=shown.spare,
        is_marked=MARKS[0] in also,
    )


def as_main(section: Section) -> Section:
    """Return a section as the main one, which JSON has as its rows."""
    return unmarked(replace(section, key=ROWS))


def unmarked(section: Section) -> Section:
    """Return a section in which words say what is not complete, and no column of its own."""
    return replace(section, is_marked=False)


def without(section: Section, names: Collection[str]) -> Section:
    """Return a section that does not show some columns this time."""
    heads = {name: head for name, head in section.heads.items() if name not in names}
    return replace(section, heads=heads)


def heads_of(of: str, view: str = MAIN) -> Mapping[str, str]:
    """Return the heads of a view of a table by the names of its columns, in order.

    Raises:
        KeyError: There is no such table or view.
    """
    return table(of).view(view).heads


def with_derived(rows: pa.Table, view: View) -> pa.Table:
    """Return rows with the columns that are derived by a form, where they are not there yet."""
    for each in view.derived:
        if each.form is not None and each.name not in rows.column_names:
            rows = rows.append_column(each.name, _derived_texts(rows, each))
    return rows


def _derived_texts(rows: pa.Table, column: ShownColumn) -> pa.Array:
    if column.form == "percent":
        shares = rows[column.sources[0]].to_pylist()
        texts = [None if each is None else f"{100 * each:.0f} %" for each in shares]
        # Pieces of a table are put together: one without any share has the same column.
        return pa.array(texts, pa.string())
    frame = pl.DataFrame(pl.from_arrow(rows.select(list(column.sources))))
    length, *bound = map(pl.col, column.sources)
    text = durations(length)
    if bound:
        text = bound[0].replace_strict(_SIGNS, default="", return_dtype=pl.String) + text
    if column.form == "time_left":
        text = pl.when(length < 0).then(pl.lit(_DUE)).otherwise(text)
    if bound:
        text = pl.when(bound[0] == _NEVER).then(pl.lit(_NEVER)).otherwise(text)
    return frame.select(text).to_series().to_arrow().cast(pa.string())
