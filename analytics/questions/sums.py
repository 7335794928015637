"""Sums of numbers of 64 bits, which may be more than such a number holds; and quotients of them.

Offsets go up to 2^63 - 1, and somebody commits that one: two of them are more. What is more than a
column holds is the largest number there is: so it stays the largest lag of all, and wraps to none
below zero.
"""

from __future__ import annotations

from typing import Final

import polars as pl

# Division by a constant, rounded as division is.


def divided(number: pl.Expr, by: float) -> pl.Expr:
    """Return a number divided by a constant, the nearest double that there is; null stays null.

    Polars multiplies by the reciprocal of a constant: 5044 / 1000 would be 5.0440000000000005.
    """
    return number / (number * 0 + pl.lit(by, pl.Float64))


MOST: Final = 2**63 - 1
AT_LEAST, AT_LEAST_ABOUT = "at_least", "at_least_about"
"""Of a sum that leaves out what is not known; of one in which there are estimates besides."""


def wide_sum(number: str | pl.Expr) -> pl.Expr:
    """Return a sum of numbers of 64 bits that cannot wrap, null where all are."""
    each = (pl.col(number) if isinstance(number, str) else number).cast(pl.Int128)
    return pl.when(each.count() > 0).then(each.sum())


def held_sum(number: str | pl.Expr) -> pl.Expr:
    """Return a sum as far as 64 bits hold it: else `MOST`, and likewise below zero."""
    return wide_sum(number).clip(-MOST - 1, MOST).cast(pl.Int64)
