"""The words of verdicts on offsets, in place of their codes (`schemas/rules/timeline.json`)."""

from __future__ import annotations

from typing import Final

import polars as pl
import pyarrow as pa

from schemas.evaluation_rules import SINCE, timeline_verdicts

_TIME: Final = "%Y-%m-%dT%H:%M:%S%.3fZ"
_VERDICT: Final = "verdict"


def in_words(rows: pa.Table) -> pa.Table:
    """Return rows of `offset_verdicts` with words for people in `verdict`.

    Args:
        rows: Has `verdict`, and `since`.
    """
    if not rows.num_rows:
        return rows
    codes = pl.DataFrame(pl.from_arrow(rows.select([_VERDICT, "since"])))
    words = codes.select(_worded()).to_series().to_arrow(compat_level=pl.CompatLevel.oldest())
    place = rows.column_names.index(_VERDICT)
    return rows.set_column(place, _VERDICT, words.cast(pa.string()))


def _worded() -> pl.Expr:
    words = {code: each.words for code, each in timeline_verdicts().items()}
    text = pl.col(_VERDICT).replace_strict(words, return_dtype=pl.String)
    timed = text.str.replace(SINCE, pl.col("since").dt.strftime(_TIME), literal=True)
    return pl.when(text.str.contains(SINCE, literal=True)).then(timed).otherwise(text)


def words_of(code: str) -> str:
    """Return the words of a verdict that has no time in them.

    Raises:
        KeyError: There is no such verdict.
    """
    return timeline_verdicts()[code].words
