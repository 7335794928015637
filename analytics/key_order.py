"""Rows of a table in the order of its key, sorted only as far as they are not."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import takewhile
from typing import Final

import polars as pl

_FIRST_FEW: Final = 1000
_SEVERAL: Final = 2


def in_key_order(rows: pl.DataFrame, key: Sequence[str]) -> pl.DataFrame:
    """Sort rows by their key, nulls last; rows with equal keys stay as they are to each other.

    To look whether rows are in order takes a tenth of the time of sorting them by names. Rows that
    are made group by group are often in order but for the offset that leads the key.

    Args:
        rows: They have the columns of the key.
        key: What they are sorted by.
    """
    if len(rows) < _SEVERAL:
        return rows
    telling = [name for name in key if not _is_same(rows[name])]
    if _are_ordered(rows, telling):
        return rows
    numbers = list(takewhile(lambda name: rows[name].dtype.is_integer(), telling))
    if numbers:
        rows = rows.sort(numbers, nulls_last=True, maintain_order=True)
        if _are_ordered(rows, telling):
            return rows
    return rows.sort(telling, nulls_last=True, maintain_order=True)


def are_in_strict_order(rows: pl.DataFrame, key: Sequence[str]) -> bool:
    """Return whether each row is greater by a key than the one before it: then no two are alike.

    Args:
        rows: They have the columns of the key.
        key: By what they are compared; a null comes last.
    """
    telling = [name for name in key if not _is_same(rows[name])]
    if len(rows) < _SEVERAL:
        return True
    few = rows.head(_FIRST_FEW)
    is_ordered = _is_ordered(telling, is_strict=True)
    return bool(telling) and all(each.select(is_ordered).item() for each in (few, rows))


def _is_same(values: pl.Series) -> bool:
    """Whether all rows have the same value."""
    if values.null_count() in (0, len(values)):
        return not len(values) or values[0] is None or bool((values == values[0]).all())
    return False


def _are_ordered(rows: pl.DataFrame, key: Sequence[str]) -> bool:
    few = rows.head(_FIRST_FEW)
    return all(each.select(_is_ordered(key)).item() for each in (few, rows))


def _is_ordered(key: Sequence[str], *, is_strict: bool = False) -> pl.Expr:
    """Whether no row is less than the one before it, nor equal to it where that is strict."""
    follows = pl.lit(value=not is_strict)
    for name in reversed(key):
        before, here = pl.col(name).shift(1), pl.col(name)
        is_less = (before < here).fill_null(before.is_not_null() & here.is_null())
        follows = is_less | (before.eq_missing(here) & follows)
    return follows.slice(1).all() if key else follows
