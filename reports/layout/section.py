"""One table of an answer: rows, and what is shown of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import pyarrow as pa

ROWS = "rows"


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

    @property
    def names(self) -> list[str]:
        """The columns that formats for programs have."""
        return [*self.heads, *self.also]


def raw_section(rows: pa.Table, name: str) -> Section:
    """Return a table as it is, for programs: under its name, with all its columns."""
    heads = dict(zip(rows.column_names, rows.column_names, strict=True))
    return Section(rows, heads, name=name, key=name)
