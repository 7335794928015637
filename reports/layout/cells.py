"""Values of columns as texts that a terminal only shows: times, lengths of time, names.

Long names are cut short in the middle, so that they still tell rows apart.
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Mapping, Sequence
from itertools import pairwise

import polars as pl
import pyarrow as pa
import pyarrow.compute as pc

from reports.plain_text import DURATIONS, printable
from schemas.shown import SIGNS_OF_BOUNDS

# Lengths of time in words, of whole columns; `reports.plain_text.duration` says one of them.


def durations(milliseconds: pl.Expr) -> pl.Expr:
    """Return lengths of time in the two largest units they have: `2 h 5 min`; null of null."""
    told = pl.format("{} ms", milliseconds)
    smaller = pl.lit("")
    for size, unit in reversed(DURATIONS):
        count = milliseconds // size
        said = pl.format("{} " + unit, count) + smaller
        told = pl.when(milliseconds >= size).then(said).otherwise(told)
        smaller = _and(milliseconds, size, unit)
    return told


def _and(milliseconds: pl.Expr, size: int, unit: str) -> pl.Expr:
    """Return how many of a unit follow the one above it; nothing where there are none."""
    above = {small: large for (large, _), (small, _) in pairwise(DURATIONS)}
    if size not in above:
        return pl.lit("")
    count = milliseconds % above[size] // size
    return pl.when(count > 0).then(pl.format(" {} " + unit, count)).otherwise(pl.lit(""))


# Columns of times as they are printed everywhere.

_FORMAT = "%Y-%m-%dT%H:%M:%S%.3fZ"
_MILLISECONDS = pa.timestamp("ms", "UTC")


def instants(column: pa.ChunkedArray, not_before: pa.ChunkedArray) -> pa.ChunkedArray:
    """Return instants as text; one that is only bounded says "no later than".

    Args:
        column: The instants, or the latest they can be.
        not_before: The earliest they can be; null where the instant is exact.
    """
    text = times(column)
    bound = pc.binary_join_element_wise("<=", text, " ")
    return pc.if_else(pc.is_valid(not_before), bound, text)


def times(column: pa.ChunkedArray) -> pa.ChunkedArray:
    """Return instants as text: UTC, milliseconds, Z."""
    # Arrow's strftime takes several times as long: half of the time of an answer in JSON.
    milliseconds = pl.Series(pl.from_arrow(pc.cast(column, _MILLISECONDS, safe=False)))
    text = milliseconds.dt.replace_time_zone(None).dt.to_string(_FORMAT)
    return pa.chunked_array([text.to_arrow(compat_level=pl.CompatLevel.oldest()).cast(pa.string())])


ABSENT = "-"

_ELLIPSIS = "\N{HORIZONTAL ELLIPSIS}"
_DIGITS, _LARGE = 4, 10**4
SHORTEST = 12
"""So much of a name is always left."""


def with_values(rows: pa.Table, name: str, values: pa.Array | pa.ChunkedArray) -> pa.Table:
    """Return rows with other values in a column."""
    return rows.set_column(rows.schema.get_field_index(name), name, values)


def with_times_as_text(rows: pa.Table) -> pa.Table:
    """Return rows with their times as they are printed everywhere."""
    for field in rows.schema:
        if pa.types.is_timestamp(field.type):
            rows = with_values(rows, field.name, times(rows[field.name]))
    return rows


def signed(rows: pa.Table, bounds: Mapping[str, str]) -> pa.Table:
    """Return rows in which values that are bounds have their signs; those columns are texts then.

    Args:
        rows: Has the columns.
        bounds: The column that says whether a value is exact, by the column that has the value.
    """
    for name, bound in bounds.items():
        words = rows[bound]
        if not pc.any(pc.is_in(words, pa.array(list(SIGNS_OF_BOUNDS)))).as_py():
            continue
        values = rows[name]
        is_time = pa.types.is_timestamp(values.type)
        if pa.types.is_floating(values.type):
            values = pc.cast(pc.round(values), pa.int64())
        texts = times(values) if is_time else pc.cast(values, pa.string())
        signs = [SIGNS_OF_BOUNDS.get(each, "") for each in words.to_pylist()]
        rows = with_values(
            rows, name, pc.binary_join_element_wise(pa.array(signs, pa.string()), texts, "")
        )
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
    text = pc.fill_null(pc.cast(_rounded(flat(column)), pa.string()), ABSENT)
    text = pc.if_else(pc.equal(text, ""), ABSENT, text)
    # Beyond ASCII Arrow takes letters for printable that Python, and terminals, do not know.
    is_plain = pc.and_(pc.string_is_ascii(text), pc.utf8_is_printable(text))
    if pc.all(is_plain).as_py() is False:
        return pa.chunked_array(
            [pa.array([printable(each) for each in text.to_pylist()], pa.string())]
        )
    return text


def _rounded(column: pa.ChunkedArray) -> pa.ChunkedArray:
    """Return fractions with as many digits as a person reads: four, or all before the point."""
    if not pa.types.is_floating(column.type):
        return column
    numbers = pl.Series(pl.from_arrow(column))
    is_large = (numbers.abs() >= _LARGE).fill_null(value=False)
    shown = numbers.round(0).zip_with(is_large, numbers.round_sig_figs(_DIGITS))
    return pa.chunked_array([shown.to_arrow()])


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
