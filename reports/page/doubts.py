"""Marks of rows that a dump does not show whole: in a table of the page, and below a chart."""

from __future__ import annotations

from typing import Final

import pyarrow as pa
import pyarrow.compute as pc

from reports.page.model import Cell
from reports.page.texts import ABSENT, harmless, name_cut

HEAD: Final = "Cannot tell"
_COMPLETE: Final = "complete"
_WORDS: Final = ("missing", "incomplete_because")
"""Columns that say what is lacking; `missing` is a number of generations in `group_churn`."""
_LONGEST: Final = 160


def doubts(rows: pa.Table) -> list[Cell]:
    """Return a mark for each row with what is lacking; none where all rows are whole.

    Args:
        rows: Of a table that has `complete`, and what is lacking in words; one that has no
            `complete` gets no marks, nor does a row of which that is null: it is of what is gone.
    """
    if not _has_doubt(rows):
        return []
    return [
        _mark(why) if is_whole is False else Cell(ABSENT)
        for is_whole, why in zip(rows[_COMPLETE].to_pylist(), _words(rows), strict=True)
    ]


def doubt_said(rows: pa.Table) -> str:
    """Return what is said below a chart of these rows; nothing where all are whole."""
    if not _has_doubt(rows):
        return ""
    lacking = rows.filter(pc.invert(rows[_COMPLETE]))
    whys = [each for each in _words(lacking) if each is not None]
    why = f": {name_cut(harmless(whys[0]), _LONGEST)}" if whys else ""
    return f" Cannot tell whether {lacking.num_rows:,} of {rows.num_rows:,} rows are so{why}."


def _has_doubt(rows: pa.Table) -> bool:
    if _COMPLETE not in rows.column_names or not rows.num_rows:
        return False
    return bool(pc.any(pc.invert(rows[_COMPLETE])).as_py())


def _words(rows: pa.Table) -> list[str | None]:
    """Return what is lacking of each row, in words; None where no column has any."""
    for name in _WORDS:
        if name in rows.column_names and pa.types.is_string(rows.schema.field(name).type):
            words: list[str | None] = rows[name].to_pylist()
            return words
    return [None] * rows.num_rows


def _mark(why: str | None) -> Cell:
    text = "cannot tell" if why is None else f"cannot tell: {harmless(why)}"
    short = name_cut(text, _LONGEST)
    return Cell(short, whole="" if short == text else text, tone="warning")
