"""Sums of numbers of 64 bits, which may be more than such a number holds; and quotients of them.

Offsets go up to 2^63 - 1, and somebody commits that one: two of them are more. What is more than a
column holds is the largest number there is: so it stays the largest lag of all, and wraps to none
below zero.
"""

from __future__ import annotations

from decimal import Decimal
from typing import TYPE_CHECKING, Final

import polars as pl
import pyarrow as pa
import pyarrow.compute as pc

if TYPE_CHECKING:
    from collections.abc import Sequence

# Division by a constant, rounded as division is.


def divided(number: pl.Expr, by: float) -> pl.Expr:
    """Return a number divided by a constant, the nearest double that there is; null stays null.

    Polars multiplies by the reciprocal of a constant: 5044 / 1000 would be 5.0440000000000005.
    """
    return number / (number * 0 + pl.lit(by, pl.Float64))


MOST: Final = 2**63 - 1
_LEAST: Final = -(2**63)
_WIDE: Final = pa.decimal128(38, 0)


def with_sums(
    rows: pa.Table,
    keys: Sequence[str],
    names: Sequence[str],
    others: Sequence[tuple[str, str]] = (),
) -> pa.Table:
    """Add up columns of rows that have the same key.

    Args:
        rows: Any.
        keys: Of the groups.
        names: Columns of int64; sums of theirs are `<name>_sum`: null where all are, `MOST` where
            they come to that or more, and likewise below zero.
        others: What else is made of columns, as ``pyarrow.TableGroupBy.aggregate`` names it.

    Returns:
        A row a key: the keys, and what `aggregate` calls the rest.
    """
    wide = rows
    for name in names:
        place = wide.column_names.index(name)
        wide = wide.set_column(place, name, pc.cast(rows[name], _WIDE))
    found = wide.group_by(list(keys)).aggregate([*((each, "sum") for each in names), *others])
    for name in names:
        column = f"{name}_sum"
        held = _held(found[column])
        found = found.set_column(found.column_names.index(column), column, held)
    return found


def _held(sums: pa.ChunkedArray) -> pa.ChunkedArray:
    most, least = (pa.scalar(Decimal(each), _WIDE) for each in (MOST, _LEAST))
    sums = pc.if_else(pc.greater(sums, most), most, sums)
    return pc.cast(pc.if_else(pc.less(sums, least), least, sums), pa.int64())
