"""Rows of an answer as text, JSON, CSV or Markdown; a million of them takes no Python a cell."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from reports.columns import printable

SCHEMA_VERSION = 1
_ABSENT = "-"
_GAP = "  "


@dataclass(frozen=True)
class Section:
    """Rows under one set of columns.

    Attributes:
        rows: Has the columns, and possibly others.
        heads: The head of each column that is shown, by its name, in order.
        also: Columns that formats for programs have besides.
    """

    rows: pa.Table
    heads: Mapping[str, str]
    also: Sequence[str] = ()

    @property
    def names(self) -> list[str]:
        """The columns that formats for programs have."""
        return [*self.heads, *self.also]


def shown(sections: Sequence[Section], output_format: str, said: Mapping[str, Any]) -> str:
    """Return the rows of all sections in one of the formats.

    Args:
        sections: What is shown; text and Markdown show each as a table of its own.
        output_format: ``text``, ``json``, ``csv`` or ``markdown``.
        said: `as_of`, `input` and what else the JSON object has beside `rows`.
    """
    match output_format:
        case "json":
            return _json(sections, said)
        case "csv":
            return _csv(sections)
        case "markdown":
            return "\n\n".join(_markdown(each) for each in sections)
        case _:
            return "\n\n".join(_text(each) for each in sections)


def _text(section: Section) -> str:
    heads = list(section.heads.values())
    columns = [_cells(section.rows[name]) for name in section.heads]
    widths = [
        max(len(head), pc.max(pc.utf8_length(cells)).as_py() or 0)
        for head, cells in zip(heads, columns, strict=True)
    ]
    # The last one is not padded: no line ends in blanks.
    padded = [
        pc.utf8_rpad(cells, width=width)
        for cells, width in zip(columns[:-1], widths[:-1], strict=True)
    ]
    lines = pc.binary_join_element_wise(*padded, columns[-1], _GAP)
    head = _GAP.join(text.ljust(width) for text, width in zip(heads, widths, strict=True)).rstrip()
    return "\n".join([head, *lines.to_pylist()])


def _markdown(section: Section) -> str:
    heads = list(section.heads.values())
    columns = [
        pc.replace_substring(_cells(section.rows[name]), "|", "\\|") for name in section.heads
    ]
    lines = pc.binary_join_element_wise(*columns, " | ").to_pylist()
    rule = "|".join([" --- "] * len(heads))
    return "\n".join([f"| {' | '.join(heads)} |", f"|{rule}|", *(f"| {line} |" for line in lines)])


def _cells(column: pa.ChunkedArray) -> pa.ChunkedArray:
    """Return values as text that a terminal only shows; null and nothing as a hyphen."""
    text = pc.fill_null(pc.cast(column, pa.string()), _ABSENT)
    text = pc.if_else(pc.equal(text, ""), _ABSENT, text)
    if pc.all(pc.utf8_is_printable(text)).as_py() is False:
        return pa.chunked_array([pa.array([printable(each) for each in text.to_pylist()])])
    return text


def _json(sections: Iterable[Section], said: Mapping[str, Any]) -> str:
    """Return one object, a row a line: indenting each would take Python a value."""
    rows = [
        json.dumps(row, ensure_ascii=False)
        for each in sections
        for row in each.rows.select(each.names).to_pylist()
    ]
    head = json.dumps({"schema_version": SCHEMA_VERSION, **said}, indent=1, ensure_ascii=False)
    listed = ",\n  ".join(rows)
    body = f"[\n  {listed}\n ]" if rows else "[]"
    return f'{head.removesuffix("}").rstrip()},\n "rows": {body}\n}}'


def _csv(sections: Sequence[Section]) -> str:
    names = list(dict.fromkeys(name for each in sections for name in each.names))
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(names)
    for each in sections:
        none = [None] * each.rows.num_rows
        writer.writerows(
            zip(
                *(each.rows[name].to_pylist() if name in each.names else none for name in names),
                strict=True,
            )
        )
    return out.getvalue().removesuffix("\n")
