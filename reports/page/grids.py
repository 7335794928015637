"""Rows of a workspace's table as a table of the page."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any, Final

import pyarrow as pa

from reports.page.doubts import HEAD, doubts
from reports.page.model import Cell, Grid
from reports.page.texts import (
    ABSENT,
    cell_text,
    group_anchor,
    harmless,
    moment,
    name_cut,
    names_cut,
)
from schemas import table
from schemas.shown import PAGE

NUMBERS: Final = ("number", "decimal", "share", "bytes", "duration")
_LONGEST_TEXT: Final = 160
_LONGEST_WORD: Final = 40
"""What is longer, and has blanks, goes on in the next line."""


@dataclass(frozen=True)
class Shown:
    """How a column is shown.

    Attributes:
        name: The column.
        head: Its head.
        kind: As `texts.said` has it; or name, group (a name that leads to its story), partition
            (a number that is a name), time, text.
        tones: The tone of words.
    """

    name: str
    head: str
    kind: str = "text"
    tones: Mapping[str, str] | None = None


def columns_of(
    of: str, view: str = PAGE, tones: Mapping[str, Mapping[str, str]] | None = None
) -> tuple[Shown, ...]:
    """Return the columns of a table that a page shows, as its contract has them.

    Args:
        of: The table, by the name of its contract.
        view: The view, whose name begins with "page".
        tones: The tone of words, by column.

    Raises:
        KeyError: There is no such table or view.
    """
    return tuple(
        Shown(each.name, each.head, each.form or "text", (tones or {}).get(each.name))
        for each in table(of).view(view).columns
    )


def grid_of(
    anchor: str,
    caption: str,
    rows: pa.Table,
    columns: Sequence[Shown],
    *,
    top: int,
    source: str,
    stories: frozenset[str] = frozenset(),
) -> Grid:
    """Return the first rows of a table; those that the dump does not show whole carry a mark.

    Args:
        anchor: Its id on the page.
        caption: What it shows.
        rows: In the order they are shown.
        columns: Those that are shown; but for the first, one without any value is left out.
        top: At most so many rows.
        source: Where in the workspace all rows are ("evaluations/lag").
        stories: Groups that have a story to lead to.
    """
    begins = rows.slice(0, top)
    there = [each for each in columns if _says_something(begins, each)]
    first = begins.select([each.name for each in there])
    cells = [_cells(first[each.name].to_pylist(), each, stories) for each in there]
    heads = [each.head for each in there]
    marks = doubts(begins)
    if marks:
        heads.append(HEAD)
        cells.append(marks)
    return Grid(
        anchor=anchor,
        caption=caption,
        heads=tuple(heads),
        rows=tuple(zip(*cells, strict=True)),
        numbers=frozenset(n for n, each in enumerate(there) if each.kind in NUMBERS),
        sentences=frozenset(
            n
            for n, column in enumerate(cells)
            if any(len(each.text) > _LONGEST_WORD and " " in each.text for each in column)
        ),
        more=_more(rows.num_rows - first.num_rows, source),
    )


def of_so_many(grid: Grid, count: int, source: str) -> Grid:
    """Return a grid that was made of the first rows of a table, of which there are so many."""
    return replace(grid, more=_more(count - len(grid.rows), source))


def _more(count: int, source: str) -> str:
    return f"{count:,} more in {source}" if count else ""


def _says_something(rows: pa.Table, column: Shown) -> bool:
    if column.name not in rows.column_names:
        return False
    is_key = column.kind in ("group", "name")
    return is_key or rows[column.name].null_count < rows.num_rows


def _cells(values: list[Any], column: Shown, stories: frozenset[str]) -> list[Cell]:
    match column.kind:
        case "group" | "name":
            return _names(values, stories if column.kind == "group" else frozenset())
        case "time":
            return [_time(each) for each in values]
        case "partition":
            return [Cell(ABSENT if each is None else str(each)) for each in values]
    tones = column.tones or {}
    return [_cell(each, column.kind, tones.get) for each in values]


def _names(values: list[Any], stories: frozenset[str]) -> list[Cell]:
    cut = names_cut([ABSENT if each is None else str(each) for each in values])
    return [
        Cell(ABSENT)
        if each in (None, "")
        else Cell(
            short,
            whole="" if short == harmless(each) else harmless(each),
            href=f"#{group_anchor(each)}" if each in stories else "",
        )
        for each, short in zip(values, cut, strict=True)
    ]


def name_cell(name: str, *, href: str = "") -> Cell:
    """Return one name."""
    short, whole = name_cut(name), harmless(name)
    return Cell(short, "" if short == whole else whole, href)


def _time(value: datetime | None) -> Cell:
    return Cell(ABSENT) if value is None else Cell(moment(value))


def _cell(value: Any, kind: str, tone: Callable[[str], str | None]) -> Cell:  # noqa: ANN401
    text = cell_text(value, kind)
    found = tone(value) if isinstance(value, str) else None
    if len(text) > _LONGEST_TEXT:
        return Cell(name_cut(text, _LONGEST_TEXT), whole=text, tone=found or "")
    return Cell(text, tone=found or "")
