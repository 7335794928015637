"""What every event of a group has: when, what, to whom, and which record showed it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import polars as pl

from analytics.contracts import contract_frame, contract_schema
from analytics.replay.log.losses import with_missing

if TYPE_CHECKING:
    from collections.abc import Mapping

EVENTS = contract_schema("group_events")


def event_rows(frame: pl.DataFrame, log: str) -> pl.DataFrame:
    """Return events as rows of `group_events`.

    Args:
        frame: Has the columns of `group_events` but `log` and marks; rows whose `event` is null are
            none. `doubt` says, where it is there, why an event may be none of the group.
        log: The internal topic that holds the records.
    """
    doubt = pl.col("doubt") if "doubt" in frame.columns else pl.lit(None, pl.String)
    told = with_missing(frame, doubt)
    told = told.filter(pl.col("event").is_not_null()).with_columns(pl.lit(log).alias("log"))
    return contract_frame(told, "group_events")


def words(*parts: pl.Expr | str, between: str = "") -> pl.Expr:
    """Join columns and texts; what is null is left out."""
    given = [pl.lit(each) if isinstance(each, str) else each for each in parts]
    return pl.concat_str(given, separator=between, ignore_nulls=True)


def with_word(word: str, *parts: pl.Expr | str) -> pl.Expr:
    """Join a word and columns; null where one of these is."""
    given = [pl.lit(each) if isinstance(each, str) else each for each in (word, *parts)]
    return pl.concat_str(given)


def first_word(conditions: Mapping[str, pl.Expr]) -> pl.Expr:
    """Return the first word whose condition holds, or null."""
    return pl.coalesce(
        *(pl.when(condition).then(pl.lit(word)) for word, condition in conditions.items()),
        pl.lit(None, pl.String),
    )
