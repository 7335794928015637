"""Lengths of time in words, of whole columns; `reports.quantities.duration` says one of them."""

from __future__ import annotations

from itertools import pairwise

import polars as pl

from reports.quantities import DURATIONS


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
