"""Rows of an answer as text, JSON, CSV or Markdown; a million of them takes no Python a cell."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

import polars as pl
import pyarrow as pa
import pyarrow.compute as pc
from polars import selectors as cs

from reports.layout.cells import cells, flat, with_times
from reports.layout.choice import chosen, left_out, rows_in, without_rows
from reports.layout.output_format import OutputFormat
from reports.layout.section import ROWS, LongSection, Section
from reports.layout.text import MARK, text_of

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
    wanted = output_format
    if not isinstance(wanted, OutputFormat):
        wanted = OutputFormat(output_format)
    picked = [each for each in sections if wanted.has(each.name)]
    found = chosen(sections, wanted)
    gone = left_out(picked, found)
    match wanted:
        case "json":
            return _json(found, {**said, **({"left_out": gone} if gone else {})}, wanted)
        case "csv":
            return _csv([each for each in found if wanted.table or each.key == ROWS])
    return iter([_for_people(picked, found, wanted)])


def _for_people(
    picked: Sequence[Section | LongSection],
    found: Sequence[Section | LongSection],
    wanted: OutputFormat,
) -> str:
    tables = []
    for before, shown in zip(picked, found, strict=True):
        assert isinstance(shown, Section), "people are shown what can be held"
        each = shown.for_people
        # Of what went wrong there may be nothing: an empty table says no more than that.
        if wanted.only_problems and not each.rows.num_rows:
            continue
        text = (
            _markdown(each)
            if wanted == "markdown"
            else text_of(each, is_wide=wanted.is_wide, is_colored=wanted.is_colored)
        )
        more = rows_in(before) - each.rows.num_rows + each.more
        tables.append("\n".join([*_title(each, wanted), text, *_more(more, wanted)]))
    if wanted.only_problems and picked and not tables:
        return NO_PROBLEM
    return "\n\n".join(tables)


def _title(section: Section, wanted: str) -> list[str]:
    if not section.title:
        return []
    return [f"## {section.title}\n"] if wanted == "markdown" else [section.title]


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
            lines = pl.DataFrame(pl.from_arrow(with_times(rows))).write_ndjson()
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
