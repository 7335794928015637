"""Rows of an answer, those asked for, as text, JSON, CSV or Markdown.

A million of them takes no Python a cell.

Rows of any size in an order of one's own: sorted some at a time, laid down, and merged.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Final, NamedTuple

import numpy as np
import polars as pl
import pyarrow as pa
import pyarrow.compute as pc
from polars import selectors as cs

from reports.layout.cells import cells, flat, with_times_as_text
from reports.layout.output_format import OutputFormat, UnknownColumnError
from reports.layout.section import (
    MOST,
    ROWS,
    SHOWN,
    LongSection,
    Order,
    Section,
    first_in_order,
    problems_of,
)
from reports.layout.text import MARK, text_of
from reports.plain_text import wrapped

_IN_A_RUN: Final = 100_000
"""So many rows are sorted together."""
_HELD_AT_ONCE: Final = 64_000
"""So many rows of all runs are held together, about."""
_FEWEST: Final = 250
_PLACE, _RUN = "place_of_row", "run_of_row"


@dataclass(frozen=True)
class SortedRows:
    """A table of any size in an order (`Rows`).

    Attributes:
        read: Gives its rows in any order, some at a time; at least once.
        order: In which they are wanted; rows that are equal stay as they are to each other.
    """

    read: Callable[[], Iterable[pa.Table]]
    order: Order

    @cached_property
    def num_rows(self) -> int:
        """How many rows it has."""
        return sum(each.num_rows for each in self.read())

    def pieces(self, columns: Sequence[str] | None = None) -> Iterator[pa.Table]:
        """Yield its rows in order, some at a time; at least once."""
        for each in in_order(self.read(), self.order):
            yield each if columns is None else each.select(list(columns))

    def first(self, most: int) -> pa.Table:
        """Return its first rows."""
        if not most:
            return next(iter(self.read())).slice(0, 0)
        return first_in_order(self.read(), self.order, most)

    def whole(self) -> pa.Table:
        """Return all of its rows."""
        return pa.concat_tables(self.pieces())


def in_order(pieces: Iterable[pa.Table], order: Order) -> Iterator[pa.Table]:
    """Yield rows in an order, some at a time, at least once; nulls last, and equal ones stay.

    Args:
        pieces: All rows, some at a time; at least once.
        order: In which they are wanted.
    """
    by = [*order, (_PLACE, "ascending")]
    with TemporaryDirectory(prefix="groupscope-", ignore_cleanup_errors=True) as folder:
        files: list[Path] = []
        for rows in _runs(pieces):
            ordered = _sorted(rows, by)
            if not files and rows.num_rows < _IN_A_RUN:
                # All that there is.
                yield ordered.drop_columns([_PLACE])
                return
            files.append(Path(folder) / str(len(files)))
            _lay_down(ordered, files[-1])
        for merged in _merged(files, by):
            yield merged.drop_columns([_PLACE])


def _runs(pieces: Iterable[pa.Table]) -> Iterator[pa.Table]:
    """Yield as many rows as are sorted together, numbered in the order they come, at least once.

    All but the last have `_IN_A_RUN` at least.
    """
    held: list[pa.Table] = []
    size, count = 0, 0
    for piece in pieces:
        places = pa.array(np.arange(count, count + piece.num_rows))
        held.append(piece.append_column(_PLACE, places))
        size, count = size + piece.num_rows, count + piece.num_rows
        if size >= _IN_A_RUN:
            yield pa.concat_tables(held)
            held, size = [held[-1].slice(0, 0)], 0
    yield pa.concat_tables(held)


def _sorted(rows: pa.Table, by: Order) -> pa.Table:
    return rows.take(pc.sort_indices(rows, list(by)))


def _lay_down(rows: pa.Table, path: Path) -> None:
    plain = rows.unify_dictionaries().combine_chunks()
    with pa.OSFile(str(path), "wb") as sink, pa.ipc.new_file(sink, plain.schema) as writer:
        writer.write_table(plain, max_chunksize=_FEWEST)


def _laid_down(path: Path, at_once: int) -> Iterator[pa.Table]:
    """Yield the rows of a run, some at a time."""
    with pa.OSFile(str(path), "rb") as source:
        file: Any = pa.ipc.open_file(source)
        several = max(at_once // _FEWEST, 1)
        for start in range(0, file.num_record_batches, several):
            numbers = range(start, min(start + several, file.num_record_batches))
            yield pa.Table.from_batches([file.get_batch(each) for each in numbers])


def _merged(files: Sequence[Path], by: Order) -> Iterator[pa.Table]:
    """Yield the rows of runs that are in order, in the order of all of them."""
    most = max(_HELD_AT_ONCE // len(files), _FEWEST)
    left = {number: _laid_down(path, most) for number, path in enumerate(files)}
    held: dict[int, pa.Table] = {}
    while left or held:
        for number in [
            each for each in left if each not in held or held[each].num_rows < most // 2
        ]:
            more = next(left[number], None)
            if more is None:
                del left[number]
            else:
                run = pa.repeat(pa.scalar(number, pa.int32()), more.num_rows)
                rows = [held[number]] if number in held else []
                held[number] = pa.concat_tables([*rows, more.append_column(_RUN, run)])
        if not held:
            return
        together = _sorted(pa.concat_tables(held.values()), by)
        runs = together[_RUN].to_numpy()
        # Of a run with more rows, none goes before the last one that is held.
        ends = [int(np.flatnonzero(runs == number)[-1]) + 1 for number in left]
        end = min(ends, default=together.num_rows)
        yield together.slice(0, end).drop_columns([_RUN])
        waiting = together.slice(end)
        rest = {number: waiting.filter(pc.equal(waiting[_RUN], number)) for number in held}
        held = {number: rows for number, rows in rest.items() if rows.num_rows}


# Which rows of which tables are shown: `--table`, `--only-problems`, `--sort`, `--top`.


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


__all__ = ["Section", "render"]
SCHEMA_VERSION = 2
NO_PROBLEM = "No row is marked as a problem."
_AT_ONCE: Final = 10_000
"""So many rows are text at the same time: the text of an answer takes several times its rows."""
Text = str | Iterator[str]
"""A text, or its pieces one after the other, to be written as they come."""
_FORMULA: Final = r"^[=+\-@\t\r]"
"""What spreadsheets take a text that begins with it for."""

MARKUP: Final = r"[\\`*_{}\[\]<>#|~!&@]"
"""A pattern, as Python and Arrow have it, of characters that a backslash makes text of anywhere."""


def render(
    sections: Sequence[Section | LongSection], output_format: str, said: Mapping[str, Any]
) -> str:
    """Return `rendered` as one text."""
    return "".join(rendered(sections, output_format, said))


class ShownTables(NamedTuple):
    """Tables as people have them.

    Attributes:
        text: As text or Markdown.
        sections: What of them is shown, with the rows that are.
    """

    text: str
    sections: Sequence[Section]

    def legend(self, name: str, column: str, meanings: Mapping[str, str]) -> list[str]:
        """Return what the words mean that are shown in a column of a table."""
        columns = [each.rows[column] for each in self.sections if each.name == name]
        values = (
            pc.list_flatten(each) if pa.types.is_list(each.type) else each for each in columns
        )
        words = {word for each in values for word in pc.unique(each).to_pylist()}
        return [f"{word}: {text}" for word, text in meanings.items() if word in words]


def shown_tables(sections: Sequence[Section | LongSection], output_format: str) -> ShownTables:
    """Return tables as text or Markdown, and what of them is shown.

    Args:
        sections: The tables.
        output_format: ``text`` or ``markdown``; an `OutputFormat` says more.

    Raises:
        UnknownColumnError: No section has the column that rows are to be sorted by.
    """
    wanted = _as_format(output_format)
    picked = [each for each in sections if wanted.has(each.name)]
    found = [each for each in chosen(sections, wanted) if isinstance(each, Section)]
    return ShownTables(_for_people(picked, found, wanted), found)


def _as_format(output_format: str) -> OutputFormat:
    if isinstance(output_format, OutputFormat):
        return output_format
    return OutputFormat(output_format)


def rendered(
    sections: Sequence[Section | LongSection], output_format: str, said: Mapping[str, Any]
) -> Iterator[str]:
    """Return the rows of all sections in one of the formats, in pieces.

    Text and Markdown show each section as a table of its own, those that went wrong first. JSON has
    them by their keys: `rows` is the main one. CSV has one table: all sections of the key `rows`,
    or the one that `--table` names.

    Args:
        sections: What is shown.
        output_format: ``text``, ``json``, ``csv`` or ``markdown``; an `OutputFormat` says more.
        said: `as_of`, `input` and what else the JSON object has beside `rows`.

    Raises:
        UnknownColumnError: No section has the column that rows are to be sorted by.
    """
    wanted = _as_format(output_format)
    if not wanted.is_for_programs:
        return iter([shown_tables(sections, wanted).text])
    picked = [each for each in sections if wanted.has(each.name)]
    found = chosen(sections, wanted)
    gone = left_out(picked, found)
    match wanted:
        case "json":
            return _json(found, {**said, **({"left_out": gone} if gone else {})}, wanted)
        case _:
            return _csv([each for each in found if wanted.table or each.key == ROWS])


def _for_people(
    picked: Sequence[Section | LongSection],
    found: Sequence[Section],
    wanted: OutputFormat,
) -> str:
    tables = []
    # People are shown what can be held: all that was picked.
    for before, shown in zip(picked, found, strict=True):
        each = shown.for_people
        # Of what went wrong there may be nothing: an empty table says no more than that.
        if wanted.only_problems and not each.rows.num_rows:
            continue
        text = (
            _markdown(each)
            if wanted == "markdown"
            else text_of(each, wanted.paper, is_wide=wanted.is_wide)
        )
        more = rows_in(before) - each.rows.num_rows + each.more
        tables.append("\n".join([*_title(each, wanted), text, *_more(more, wanted)]))
    if wanted.only_problems and picked and not tables:
        return NO_PROBLEM
    return "\n\n".join(tables)


def _title(section: Section, wanted: OutputFormat) -> list[str]:
    if not section.title:
        return []
    if wanted == "markdown":
        return [f"## {section.title}\n"]
    return wrapped(section.title, wanted.width)


def _more(count: int, wanted: str) -> list[str]:
    if not count:
        return []
    line = f"({count:,} more {'row' if count == 1 else 'rows'} not shown)"
    return ["", line] if wanted == "markdown" else [line]


def _markdown(section: Section) -> str:
    heads = list(section.heads.values())
    columns = [
        pc.replace_substring_regex(cells(section.rows[name]), f"({MARKUP})", r"\\\1")
        for name in section.heads
    ]
    if section.problem is not None and pc.any(section.rows[section.problem]).as_py():
        heads.insert(0, MARK)
        columns.insert(0, pc.if_else(section.rows[section.problem], MARK, " "))
    lines = pc.binary_join_element_wise(*columns, " | ").to_pylist()
    rule = "|".join([" --- "] * len(heads))
    return "\n".join([f"| {' | '.join(heads)} |", f"|{rule}|", *(f"| {line} |" for line in lines)])


def _json(
    sections: Sequence[Section | LongSection], said: Mapping[str, Any], wanted: OutputFormat
) -> Iterator[str]:
    """Yield one object, a row a line: indenting each would take Python a value."""
    # A table that was asked for by its name is what the answer is about.
    keys = [ROWS if wanted.table else each.key for each in sections]
    lists: dict[str, list[Section | LongSection]] = {key: [] for key in keys if key != ROWS}
    lists[ROWS] = []
    for key, each in zip(keys, sections, strict=True):
        lists[key].append(each)
    head = json.dumps({"schema_version": SCHEMA_VERSION, **said}, indent=1, ensure_ascii=False)
    yield head.removesuffix("}").rstrip()
    for key, listed in lists.items():
        yield f',\n "{key}": ['
        has_rows = False
        for lines in _json_lines(listed):
            yield (",\n  " if has_rows else "\n  ") + lines
            has_rows = True
        yield "\n ]" if has_rows else "]"
    yield "\n}"


def _json_lines(sections: Sequence[Section | LongSection]) -> Iterator[str]:
    for each in _held(sections):
        for rows in _pieces(each.rows.select(each.names)):
            lines = pl.DataFrame(pl.from_arrow(with_times_as_text(rows))).write_ndjson()
            # No value has a line break: JSON writes those of texts as two characters.
            yield lines.removesuffix("\n").replace("\n", ",\n  ")


def _held(sections: Sequence[Section | LongSection]) -> Iterator[Section]:
    for each in sections:
        yield from each.pieces() if isinstance(each, LongSection) else [each]


def _csv(sections: Sequence[Section | LongSection]) -> Iterator[str]:
    names = list(dict.fromkeys(name for each in sections for name in without_rows(each).names))
    yield pl.DataFrame(schema=names).write_csv().removesuffix("\n")
    for each in _held(sections):
        for rows in _pieces(each.rows.select(each.names)):
            columns = [inert(flat(rows[name])) for name in each.names]
            frame = pl.DataFrame(pl.from_arrow(pa.table(columns, each.names)))
            frame = frame.with_columns(cs.boolean().cast(pl.String).str.to_titlecase())
            lacking = [pl.lit(None).alias(name) for name in names if name not in each.names]
            lines = frame.with_columns(lacking).select(names).write_csv(include_header=False)
            yield "\n" + lines.removesuffix("\n")


def _pieces(rows: pa.Table) -> Iterator[pa.Table]:
    for start in range(0, rows.num_rows, _AT_ONCE):
        yield rows.slice(start, _AT_ONCE)


def inert(column: pa.ChunkedArray) -> pa.ChunkedArray:
    """Return a column whose texts no spreadsheet takes for a formula: an apostrophe goes before."""
    if not pa.types.is_string(column.type):
        return column
    is_formula = pc.match_substring_regex(column, _FORMULA)
    return pc.if_else(is_formula, pc.binary_join_element_wise("'", column, ""), column)
