"""From what is stored to what it means, as polars expressions: times, absent numbers, ids."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

import polars as pl

from analytics.epoch_times import LAST_MS
from schemas import ZERO_UUID

TIME: Final = pl.Datetime("us", "UTC")


def instant(milliseconds: pl.Expr) -> pl.Expr:
    """Return epoch milliseconds as a timestamp; null where there is none, or none that fits."""
    fits = milliseconds.is_between(0, LAST_MS)
    return (pl.when(fits).then(milliseconds).cast(pl.Int64) * 1000).cast(TIME)


def present(number: pl.Expr, absent: int = -1) -> pl.Expr:
    """Return a number, null where it is the one that means absent."""
    return pl.when(number != absent).then(number)


def offset_in_force(stored: pl.Expr) -> pl.Expr:
    """Return a committed offset, null where it is below 0.

    Brokers store whatever is committed; consumers, the admin client and the tools take what is
    below 0 for none (``OffsetFetchResponse.INVALID_OFFSET`` is -1).
    """
    return pl.when(stored >= 0).then(stored)


def uuid(value: pl.Expr) -> pl.Expr:
    """Return an id of 22 characters, null where it is zero."""
    return pl.when(value != ZERO_UUID).then(value)


def text(value: pl.Expr) -> pl.Expr:
    """Return a text, null where it is empty."""
    return pl.when(value != "").then(value)


def word(number: pl.Expr, words: Mapping[int, str], otherwise: str) -> pl.Expr:
    """Return the word for a stored number; null stays null."""
    said = number.replace_strict(words, default=otherwise, return_dtype=pl.String)
    return pl.when(number.is_not_null()).then(said)
