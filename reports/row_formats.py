"""Rows of an answer as text, JSON, CSV or Markdown; a million of them takes no Python a cell."""

from __future__ import annotations

import csv
import json
from collections.abc import Mapping, Sequence
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc

from reports.layout.cells import cells, flat, with_times
from reports.layout.choice import chosen, left_out
from reports.layout.output_format import OutputFormat
from reports.layout.section import ROWS, Section
from reports.layout.text import MARK, text_of
from reports.markup import MARKUP

__all__ = ["Section", "render"]

SCHEMA_VERSION = 1
NO_PROBLEM = "No row is marked as a problem."
_ENDS: Final = "\r\n"
_FORMULA: Final = r"^[=+\-@\t\r]"
"""What spreadsheets take a text that begins with it for."""


def render(sections: Sequence[Section], output_format: str, said: Mapping[str, Any]) -> str:
    """Return the rows of all sections in one of the formats.

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
    tables = []
    for before, each in zip(picked, (each.for_people for each in found), strict=True):
        # Of what went wrong there may be nothing: an empty table says no more than that.
        if wanted.only_problems and not each.rows.num_rows:
            continue
        text = (
            _markdown(each)
            if wanted == "markdown"
            else text_of(each, is_wide=wanted.is_wide, is_colored=wanted.is_colored)
        )
        more = before.rows.num_rows - each.rows.num_rows + each.more
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


def _json(sections: Sequence[Section], said: Mapping[str, Any], wanted: OutputFormat) -> str:
    """Return one object, a row a line: indenting each would take Python a value."""
    # A table that was asked for by its name is what the answer is about.
    keys = [ROWS if wanted.table else each.key for each in sections]
    lists: dict[str, list[str]] = {}
    for key, each in zip(keys, sections, strict=True):
        rows = with_times(each.rows.select(each.names)).to_pylist()
        lists.setdefault(key, []).extend(json.dumps(row, ensure_ascii=False) for row in rows)
    lists[ROWS] = lists.pop(ROWS, [])
    head = json.dumps({"schema_version": SCHEMA_VERSION, **said}, indent=1, ensure_ascii=False)
    bodies = []
    for key, rows in lists.items():
        listed = ",\n  ".join(rows)
        bodies.append(f' "{key}": ' + (f"[\n  {listed}\n ]" if rows else "[]"))
    return f"{head.removesuffix('}').rstrip()},\n" + ",\n".join(bodies) + "\n}"


def _csv(sections: Sequence[Section]) -> str:
    names = list(dict.fromkeys(name for each in sections for name in each.names))
    out = _Lines()
    # Only what ends a line is quoted, and a reader takes either character for that.
    writer = csv.writer(out, lineterminator=_ENDS)
    writer.writerow(names)
    for each in sections:
        none = [None] * each.rows.num_rows
        writer.writerows(
            zip(
                *(
                    inert(flat(each.rows[name])).to_pylist() if name in each.names else none
                    for name in names
                ),
                strict=True,
            )
        )
    return "\n".join(out)


class _Lines(list[str]):
    """Takes rows of CSV, a line each."""

    def write(self, row: str) -> None:
        self.append(row.removesuffix(_ENDS))


def inert(column: pa.ChunkedArray) -> pa.ChunkedArray:
    """Return a column whose texts no spreadsheet takes for a formula: an apostrophe goes before."""
    if not pa.types.is_string(column.type):
        return column
    is_formula = pc.match_substring_regex(column, _FORMULA)
    return pc.if_else(is_formula, pc.binary_join_element_wise("'", column, ""), column)
