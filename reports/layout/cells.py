"""Values of columns as texts that a terminal only shows."""

from __future__ import annotations

import json

import pyarrow as pa
import pyarrow.compute as pc

from reports.columns import printable
from reports.printed_times import times

ABSENT = "-"


def with_times(rows: pa.Table) -> pa.Table:
    """Return rows with their times as they are printed everywhere."""
    for place, field in enumerate(rows.schema):
        if pa.types.is_timestamp(field.type):
            rows = rows.set_column(place, field.name, times(rows[field.name]))
    return rows


def flat(column: pa.ChunkedArray) -> pa.ChunkedArray:
    """Return a column without lists: their values with commas between."""
    if not (pa.types.is_nested(column.type) or pa.types.is_timestamp(column.type)):
        return column
    if pa.types.is_timestamp(column.type):
        return times(column)
    texts = [None if each is None else _joined(each) for each in column.to_pylist()]
    return pa.chunked_array([pa.array(texts, pa.string())])


def cells(column: pa.ChunkedArray) -> pa.ChunkedArray:
    """Return values as text that a terminal only shows; null and nothing as a hyphen."""
    text = pc.fill_null(pc.cast(flat(column), pa.string()), ABSENT)
    text = pc.if_else(pc.equal(text, ""), ABSENT, text)
    # Beyond ASCII Arrow takes letters for printable that Python, and terminals, do not know.
    is_plain = pc.and_(pc.string_is_ascii(text), pc.utf8_is_printable(text))
    if pc.all(is_plain).as_py() is False:
        return pa.chunked_array([pa.array([printable(each) for each in text.to_pylist()])])
    return text


def _joined(value: object) -> str:
    if isinstance(value, list) and not any(isinstance(each, list | dict) for each in value):
        return ",".join(map(str, value))
    return json.dumps(value, ensure_ascii=False, default=str)
