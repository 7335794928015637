"""Division by a constant, rounded as division is."""

from __future__ import annotations

import polars as pl


def divided(number: pl.Expr, by: float) -> pl.Expr:
    """Return a number divided by a constant, the nearest double that there is; null stays null.

    Polars multiplies by the reciprocal of a constant: 5044 / 1000 would be 5.0440000000000005.
    """
    return number / (number * 0 + pl.lit(by, pl.Float64))
