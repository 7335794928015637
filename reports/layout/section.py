"""One table of an answer: rows, and what is shown of them.

Of tables that are longer than a person reads: the worst rows, and how many there are.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final

import pyarrow as pa
import pyarrow.compute as pc

from reports.layout.output_format import OutputFormat

ROWS = "rows"
MARKS = ("complete", "missing")
"""Whether a row tells all, and what is lacking where it does not."""

MOST: Final = 1_000
"""A table of more rows is summed up."""
SHOWN: Final = 100
_Order = Sequence[tuple[str, str]]
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

    @property
    def for_people(self) -> Section:
        """The section as text and Markdown have it: it says which rows are not complete."""
        if not self.is_marked or pc.all(self.rows[MARKS[0]]).as_py() in {True, None}:
            return self
        return replace(self, heads={**self.heads, MARKS[0]: "COMPLETE"})

    @property
    def names(self) -> list[str]:
        """The columns that formats for programs have."""
        return [*self.heads, *self.also]


def companion_section(
    rows: pa.Table,
    heads: Mapping[str, str],
    name: str,
    *,
    title: str = "",
    problem: str | None = None,
    spare: Sequence[str] = (),
) -> Section:
    """Return a table that stands beside the main one: what has no head is for programs."""
    also = [each for each in rows.column_names if each not in heads and each != problem]
    return Section(
        rows,
        heads,
        also,
        name=name,
        key=name,
        title=title,
        problem=problem,
        spare=spare,
        is_marked=MARKS[0] in also,
    )


def raw_section(rows: pa.Table, name: str) -> Section:
    """Return a table as it is, for programs: under its name, with all its columns."""
    heads = dict(zip(rows.column_names, rows.column_names, strict=True))
    return Section(rows, heads, name=name, key=name)


def worst_rows(rows: pa.Table, order: _Order, wanted: str, most: int = MOST) -> pa.Table:
    """Return the worst rows of a table that is too long, for people; else all of them.

    Who says how many rows, in which order, or which of them, gets that.
    """
    if rows.num_rows <= most or not _is_up_to_us(wanted):
        return rows
    # Only what is shown is gathered.
    return rows.take(pc.sort_indices(rows, list(order)).slice(0, SHOWN))


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
