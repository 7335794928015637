"""One table of an answer: rows, and what is shown of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import pyarrow as pa
import pyarrow.compute as pc

ROWS = "rows"
MARKS = ("complete", "missing")
"""Whether a row tells all, and what is lacking where it does not."""


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
