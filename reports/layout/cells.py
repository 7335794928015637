"""Values of columns as texts that a terminal only shows.

Long names are cut short in the middle, so that they still tell rows apart.
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Sequence

import pyarrow as pa
import pyarrow.compute as pc

from reports.columns import printable
from reports.printed_times import times

ABSENT = "-"

_ELLIPSIS = "\N{HORIZONTAL ELLIPSIS}"
SHORTEST = 12
"""So much of a name is always left."""


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
        return pa.chunked_array(
            [pa.array([printable(each) for each in text.to_pylist()], pa.string())]
        )
    return text


def _joined(value: object) -> str:
    if isinstance(value, list) and not any(isinstance(each, list | dict) for each in value):
        return ",".join(map(str, value))
    return json.dumps(value, ensure_ascii=False, default=str)


def shortened(names: pa.ChunkedArray, width: int) -> pa.ChunkedArray:
    """Return texts of at most `width` characters: the middle of a longer one is an ellipsis.

    Names that would look alike keep what is different about them instead of their beginning.
    """
    is_long = pc.greater(pc.utf8_length(names), width)
    if not pc.any(is_long).as_py():
        return names
    long = pc.unique(names.filter(is_long)).to_pylist()
    short = _short_forms(long, width)
    index = pc.index_in(names, value_set=pa.array(long))
    return pc.coalesce(pc.take(pa.array([short[each] for each in long]), index), names)


def _short_forms(names: list[str], width: int) -> dict[str, str]:
    alike: dict[str, list[str]] = defaultdict(list)
    for name in names:
        alike[_middle_cut(name, width)].append(name)
    forms: dict[str, str] = {}
    for form, several in alike.items():
        if len(several) == 1:
            forms[several[0]] = form
        else:
            same = _same_beginning(several)
            forms.update({name: _from(name, same, width) for name in several})
    return forms


def _same_beginning(names: Sequence[str]) -> int:
    """Return how many characters all names begin with."""
    # What the first and the last in order have in common, all between them have.
    first, last = min(names), max(names)
    places = zip(first, last, strict=False)
    return next((place for place, (a, b) in enumerate(places) if a != b), len(first))


def _middle_cut(name: str, width: int) -> str:
    tail = (width - 1) // 2
    return f"{name[: width - 1 - tail]}{_ELLIPSIS}{name[len(name) - tail :]}"


def _from(name: str, same: int, width: int) -> str:
    """Return the beginning of a name, and how it goes on from where others differ."""
    head = min(same, width // 4)
    rest = name[same:]
    room = width - head - 1
    if len(rest) > room:
        rest = rest[: room - 1] + _ELLIPSIS
    return f"{name[:head]}{_ELLIPSIS}{rest}"
