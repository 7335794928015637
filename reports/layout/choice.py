"""Which rows of which tables are shown: `--table`, `--only-problems`, `--sort`, `--top`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import pyarrow as pa
import pyarrow.compute as pc

from reports.layout.output_format import OutputFormat, UnknownColumnError
from reports.layout.section import Section


def chosen(sections: Sequence[Section], wanted: OutputFormat) -> list[Section]:
    """Return the tables with the rows that are asked for, those that went wrong first.

    Raises:
        UnknownColumnError: No table has the column to sort by.
    """
    shown = [each for each in sections if wanted.has(each.name)]
    if wanted.sort is not None and shown:
        _check_column(shown, wanted.sort)
    return [replace(each, rows=_rows(each, wanted)) for each in shown]


def left_out(before: Sequence[Section], after: Sequence[Section]) -> dict[str, int]:
    """Return how many rows of which table are not shown, by name."""
    counts: dict[str, int] = {}
    for old, new in zip((each for each in before), after, strict=True):
        if gone := old.rows.num_rows - new.rows.num_rows:
            counts[old.name] = counts.get(old.name, 0) + gone
    return counts


def problems_of(section: Section) -> pa.ChunkedArray | None:
    """Return which rows say that something went wrong; None where no row of the table can."""
    if section.problem is None:
        return None
    return pc.fill_null(section.rows[section.problem].cast(pa.bool_()), fill_value=False)


def _rows(section: Section, wanted: OutputFormat) -> pa.Table:
    rows = section.rows
    problems = problems_of(section)
    if wanted.only_problems:
        rows = rows.slice(0, 0) if problems is None else rows.filter(problems)
    column = wanted.sort and _column(section, wanted.sort)
    if wanted.sort and column:
        rows = rows.take(_order(rows[column], is_turned=wanted.sort.startswith("-")))
    elif problems is not None and not wanted.is_for_programs and not wanted.only_problems:
        # A filter keeps the order within both halves.
        rows = pa.concat_tables([rows.filter(problems), rows.filter(pc.invert(problems))])
    return rows if wanted.top is None else rows.slice(0, wanted.top)


def _order(values: pa.ChunkedArray, *, is_turned: bool) -> pa.Array:
    """Return the order: numbers from the largest, all else from the first; null comes last."""
    is_number = pa.types.is_integer(values.type) or pa.types.is_floating(values.type)
    keys = pa.table({"value": values, "place": pa.array(range(len(values)), pa.int64())})
    order = "descending" if is_number != is_turned else "ascending"
    # The place keeps equal rows in the order they were in.
    return pc.sort_indices(keys, [("value", order), ("place", "ascending")])


def _check_column(sections: Sequence[Section], name: str) -> None:
    if any(_column(each, name) for each in sections):
        return
    known = dict.fromkeys(column for each in sections for column in each.heads)
    raise UnknownColumnError(
        f"--sort: there is no column {name.lstrip('-')!r}; the columns are {', '.join(known)}"
    )


def _column(section: Section, name: str) -> str | None:
    """Return the column of a name or head, whatever its case and with - for _."""
    asked = name.removeprefix("-").lower().replace("-", "_")
    for column in section.names:
        head = section.heads.get(column, column)
        if asked in (column.lower(), head.lower().replace("-", "_")):
            return column
    return None
