"""Which rows of which tables are shown: `--table`, `--only-problems`, `--sort`, `--top`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import pyarrow as pa
import pyarrow.compute as pc

from reports.layout.output_format import OutputFormat, UnknownColumnError
from reports.layout.section import MOST, SHOWN, LongSection, Order, Section, problems_of
from reports.layout.sorted_rows import SortedRows


def chosen(
    sections: Sequence[Section | LongSection], wanted: OutputFormat
) -> list[Section | LongSection]:
    """Return the tables with the rows that are asked for, those that went wrong first.

    Raises:
        UnknownColumnError: No table has the column to sort by.
    """
    shown = [each for each in sections if wanted.has(each.name)]
    if wanted.sort is not None and shown:
        _check_column([without_rows(each) for each in shown], wanted.sort)
    return [_chosen(each, wanted) for each in shown]


def without_rows(section: Section | LongSection) -> Section:
    """Return a section of which only the columns matter."""
    return section.without_rows if isinstance(section, LongSection) else section


def left_out(
    before: Sequence[Section | LongSection], after: Sequence[Section | LongSection]
) -> dict[str, int]:
    """Return how many rows of which table are not shown, by name."""
    counts: dict[str, int] = {}
    for old, new in zip(before, after, strict=True):
        if gone := rows_in(old) - rows_in(new):
            counts[old.name] = counts.get(old.name, 0) + gone
    return counts


def rows_in(section: Section | LongSection) -> int:
    """Return how many rows of a section are shown."""
    if isinstance(section, LongSection) and section.only_problems:
        return sum(each.rows.num_rows for each in section.pieces())
    return section.rows.num_rows


def _chosen(section: Section | LongSection, options: OutputFormat) -> Section | LongSection:
    if isinstance(section, Section):
        return replace(section, rows=_rows(section, options))
    order = _order(section.without_rows, options)
    if order is not None and (options.is_for_programs or section.rows.num_rows > MOST):
        return _in_order(replace(section, only_problems=options.only_problems), order, options)
    if options.is_for_programs and options.top is None:
        return replace(section, only_problems=options.only_problems)
    if options.is_for_programs and not options.only_problems:
        return section.make(section.rows.first(options.top or 0))
    if section.rows.num_rows > MOST and order is None:
        most = options.top if options.only_problems else options.top or SHOWN
        worst = replace(section, only_problems=options.only_problems).worst(most)
        return replace(worst, rows=_rows(worst, options))
    whole = section.short
    return replace(whole, rows=_rows(whole, options))


def _in_order(section: LongSection, order: Order, options: OutputFormat) -> Section | LongSection:
    """Return a section that may be too large to be held in an order of one's own.

    People are shown the first of its rows, or all that went wrong.
    """
    none, most = section.without_rows, options.top
    rows = SortedRows(lambda: (each.rows for each in section.pieces()), order)
    if not options.is_for_programs and not options.only_problems:
        most = options.top or SHOWN
    if most is not None:
        return replace(none, rows=rows.first(most))
    if options.is_for_programs:
        return LongSection(rows, lambda made: replace(none, rows=made))
    return replace(none, rows=rows.whole())


def _rows(section: Section, wanted: OutputFormat) -> pa.Table:
    rows = section.rows
    problems = problems_of(section)
    if wanted.only_problems:
        rows = rows.filter(problems)
    order = _order(section, wanted)
    if order is not None:
        # Equal rows stay in the order they were in.
        rows = rows.take(pc.sort_indices(rows, list(order)))
    elif section.problem and not wanted.is_for_programs and not wanted.only_problems:
        # A filter keeps the order within both halves.
        rows = pa.concat_tables([rows.filter(problems), rows.filter(pc.invert(problems))])
    return rows if wanted.top is None else rows.slice(0, wanted.top)


def _order(section: Section, options: OutputFormat) -> Order | None:
    """Return the order that is asked for, null comes last; None where the table has no such column.

    Numbers are sorted from the largest, all else from the first.
    """
    column = options.sort and _column(section, options.sort)
    if not options.sort or not column:
        return None
    kind = section.rows.schema.field(column).type
    is_number = pa.types.is_integer(kind) or pa.types.is_floating(kind)
    is_turned = options.sort.startswith("-")
    return [(column, "descending" if is_number != is_turned else "ascending")]


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
