"""A section of a table as its contract shows it: heads, order, what is left out first, and texts.

The one place where reports get heads from: `schemas/tables/` has them (`schemas.shown`).
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from typing import Final

import polars as pl
import pyarrow as pa

from reports.durations import durations
from reports.layout.section import MARKS, ROWS, Section
from schemas import table
from schemas.shown import MAIN, ShownColumn, View

_SIGNS: Final = {"at_least": ">= ", "at_latest": ">= ", "at_most": "<= ", "estimated": "~ "}
"""What stands before a length of time; since a time at the latest it is at least so long."""
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
