"""Values as numbers: what is equal has the same number, and numbers are quick to sort and group."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np
import polars as pl
import pyarrow as pa

if TYPE_CHECKING:
    from analytics.replay.groups.coded_log import Numbers

_MOST: Final = 2**62
"""So many combinations one number can tell apart."""


def codes(column: pl.Series) -> Numbers:
    """Number the different values of a column; null is one of them."""
    if column.null_count() == len(column):
        return np.zeros(len(column), np.int64)
    return _encoded(column.to_arrow(compat_level=pl.CompatLevel.oldest()))


def combined(*columns: Numbers) -> Numbers:
    """Return for each combination of numbers, none of them negative, a number of its own."""
    # Numbers of rows are of 32 bits.
    found, count = columns[0].astype(np.int64, copy=False), int(columns[0].max(initial=0)) + 1
    for column in columns[1:]:
        width = int(column.max(initial=0)) + 1
        if count * width > _MOST:
            found, count = _encoded(pa.array(found)), len(found)
        found, count = found * width + column, count * width
    return found


def dense(*columns: Numbers) -> tuple[Numbers, int]:
    """Number combinations of numbers without gaps, in the order of their first row; say how many.

    None of the numbers is negative.
    """
    found = _encoded(pa.array(combined(*columns)))
    return found, int(found.max(initial=-1)) + 1


def grouped(numbers: Numbers) -> tuple[Numbers, Numbers]:
    """Return rows by their number, those of the same one in order, and where each one begins."""
    # What comes from records is almost in order, and then this sort is done at once.
    order = np.argsort(numbers, kind="stable")
    ordered = numbers[order]
    is_other = np.ones(len(order), bool)
    is_other[1:] = ordered[1:] != ordered[:-1]
    return order, np.flatnonzero(is_other)


def _encoded(values: pa.Array) -> Numbers:
    encoded = values.dictionary_encode(null_encoding="encode")
    found: Numbers = encoded.indices.to_numpy().astype(np.int64)
    return found
