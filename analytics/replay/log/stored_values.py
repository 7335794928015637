"""From what is stored to what it means: times, absent numbers, ids (once, on the way to state)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark.sql import functions as F

from schemas import ZERO_UUID

if TYPE_CHECKING:
    from pyspark.sql import Column

LAST_MILLISECOND = 253_402_300_799_999
"""9999-12-31T23:59:59.999Z, the last instant that Spark's timestamps are specified for."""


def instant(milliseconds: Column) -> Column:
    """Return epoch milliseconds as a timestamp; -1 and what Spark cannot hold are null."""
    return F.when(
        milliseconds.between(0, LAST_MILLISECOND), F.timestamp_millis(milliseconds.cast("bigint"))
    )


def present(number: Column, absent: int = -1) -> Column:
    """Return a number, null where it is the one that means absent."""
    return F.when(number != absent, number)


def text(value: Column) -> Column:
    """Return a text, null where it is empty."""
    return F.when(value != "", value)


def uuid(value: Column) -> Column:
    """Return an id of 22 characters, null where it is zero."""
    return F.when(value != ZERO_UUID, value)


def word(number: Column, words: dict[int, str], otherwise: str) -> Column:
    """Return the word for a stored number; null stays null."""
    chosen = F.lit(otherwise)
    for code, name in words.items():
        chosen = F.when(number == code, name).otherwise(chosen)
    return F.when(number.isNotNull(), chosen)
