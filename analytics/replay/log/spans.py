"""Places in a coordinator's log: spans of it, and the records before and after another."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import polars as pl

from analytics.contracts import AFTER_ALL
from analytics.replay.groups.group_records import GROUP_KEY

if TYPE_CHECKING:
    from collections.abc import Sequence

# Spans of a coordinator's log: where they begin and end, where they meet, and what lies in them.
#
# All take and give frames of polars with a key and `SPAN`, of any number of partitions.

SPAN: Final = ("from_offset", "to_offset", "from_at", "to_at")
TIME: Final = pl.Datetime("us", "UTC")
SPAN_TYPES: Final = {
    "from_offset": pl.Int64(),
    "to_offset": pl.Int64(),
    "from_at": TIME,
    "to_at": TIME,
}
"""Offsets of the coordinator's partition, `to_offset` exclusive, and the times of those records."""

_FEW: Final = 4
"""To compare so many spans of a key takes less than to seek among them."""


def until_next(records: pl.DataFrame, key: Sequence[str]) -> pl.DataFrame:
    """Add `to_offset` and `to_at`: where the next record of the key lies, in the order of both."""
    return with_next(records.sort(*key, "from_offset"), key)


def with_next(records: pl.DataFrame, key: Sequence[str]) -> pl.DataFrame:
    """Add the same to records of a key that follow each other in their order."""
    goes_on = pl.all_horizontal(pl.col(name).eq_missing(pl.col(name).shift(-1)) for name in key)
    return records.with_columns(
        pl.when(goes_on)
        .then(pl.col("from_offset").shift(-1))
        .otherwise(pl.lit(AFTER_ALL, pl.Int64))
        .fill_null(AFTER_ALL)
        .alias("to_offset"),
        pl.when(goes_on).then(pl.col("from_at").shift(-1)).alias("to_at"),
    )


def joined_spans(spans: pl.DataFrame, key: Sequence[str]) -> pl.DataFrame:
    """Join spans of a key that touch or overlap.

    Args:
        spans: `key` and `SPAN`.
        key: What tells apart; null is a value of its own.

    Returns:
        The same columns, in the order of the key and `from_offset`.
    """
    ordered = spans.sort(*key, "from_offset", "to_offset")
    is_first = ~pl.all_horizontal(pl.col(name).eq_missing(pl.col(name).shift(1)) for name in key)
    ordered = ordered.with_columns(is_first.fill_null(value=True).cum_sum().alias("place"))
    reached = pl.col("to_offset").cum_max().over("place").shift(1)
    is_same = pl.col("place") == pl.col("place").shift(1)
    touches = is_same & (pl.col("from_offset") <= reached)
    return (
        ordered.with_columns((~touches.fill_null(value=False)).cum_sum().alias("island"))
        .group_by(*key, "island", maintain_order=True)
        .agg(
            pl.col("from_offset").first(),
            pl.col("to_offset").max(),
            pl.col("from_at").first(),
            pl.col("to_at").get(pl.col("to_offset").arg_max()),
        )
        .drop("island")
    )


def overlap(one: pl.DataFrame, other: pl.DataFrame, key: Sequence[str]) -> pl.DataFrame:
    """Return where spans of two frames overlap, with the columns of both.

    Args:
        one: `key`, `SPAN` and whatever else.
        other: The same; its spans of a key do not overlap each other.
        key: What tells apart.
    """
    ordered = other.sort(*key, "from_offset")
    spans = ordered.select(*key, "from_offset", "to_offset").with_row_index("nth")
    rows = one.select(*key, "from_offset", "to_offset").with_row_index("row")
    met = _met(rows, spans, key)
    # Rows are gathered by their place once it is known which meet: they may be wide.
    theirs = ordered.drop(key).rename({name: f"other_{name}" for name in SPAN})
    found = pl.concat([one[met["row"]], theirs[met["nth"]]], how="horizontal")
    later = pl.col("other_from_offset") > pl.col("from_offset")
    sooner = pl.col("other_to_offset") < pl.col("to_offset")
    chosen = {"from_offset": later, "from_at": later, "to_offset": sooner, "to_at": sooner}
    return found.with_columns(
        pl.when(is_other).then(f"other_{name}").otherwise(name).alias(name)
        for name, is_other in chosen.items()
    ).drop(f"other_{name}" for name in SPAN)


def _met(rows: pl.DataFrame, spans: pl.DataFrame, key: Sequence[str]) -> pl.DataFrame:
    """Return `row` and `nth` of rows and spans that overlap.

    Most keys have few spans: those are all compared. Among many it is sought which may.
    """
    is_few = pl.len().over(key) <= _FEW
    few, many = spans.filter(is_few), spans.filter(~is_few)
    beside = few.rename({"from_offset": "begins", "to_offset": "ends"})
    is_met = (pl.col("begins") < pl.col("to_offset")) & (pl.col("from_offset") < pl.col("ends"))
    compared = rows.join(beside, on=list(key)).filter(is_met).select("row", "nth")
    if many.is_empty():
        return compared
    first = _sought(rows, many, key, "to_offset", "from_offset", "forward")
    first = first.select("row", *key, "to_offset", low="nth")
    both = _sought(first, many, key, "from_offset", "to_offset", "backward")
    sought = (
        both.filter(pl.col("low") <= pl.col("nth"))
        .select("row", pl.int_ranges("low", pl.col("nth") + 1, dtype=pl.UInt32).alias("nth"))
        .explode("nth")
    )
    return pl.concat([compared, sought])


def _sought(
    rows: pl.DataFrame, spans: pl.DataFrame, key: Sequence[str], end: str, of: str, strategy: str
) -> pl.DataFrame:
    """Add `nth`, the span whose `end` is the next one beyond the rows' `of`; leave out none."""
    found = rows.sort(of).join_asof(
        spans.select(*key, pl.col(end).alias("beyond"), "nth").sort("beyond"),
        left_on=of,
        right_on="beyond",
        by=list(key),
        strategy="forward" if strategy == "forward" else "backward",
        allow_exact_matches=False,
        coalesce=False,
        check_sortedness=False,
    )
    return found.drop("beyond").filter(pl.col("nth").is_not_null())


# The record of a group that came last before another one, or comes next, and is such or such.
#
# Frames are sorted by group and offset, with `ROW` numbering their rows and `FIRST` and `LAST`
# the rows with which the group of a row begins and ends. A neighbour is told by the number of its
# row.

ROW, FIRST, LAST = "row", "first_row", "last_row"
LIFE, EPOCH = "life_number", "epoch_number"
"""What numbers the lives, and the epochs of lives, of all groups together."""


def in_order(
    frame: pl.DataFrame, key: Sequence[str] = GROUP_KEY, by: str = "offset"
) -> pl.DataFrame:
    """Sort a frame and number its rows: adds `ROW`, `FIRST` and `LAST`."""
    ordered = frame.sort(*key, by).with_row_index(ROW)
    of_group = pl.struct(*key).rle_id()
    return ordered.with_columns(
        pl.col(ROW).first().over(of_group).alias(FIRST),
        pl.col(ROW).last().over(of_group).alias(LAST),
    )


def last_before(when: pl.Expr) -> pl.Expr:
    """Return the number of the last row before this one for which something holds, or null."""
    return _within(_when(when).forward_fill().shift(1))


def last_up_to(when: pl.Expr) -> pl.Expr:
    """Return the number of the last row up to this one for which something holds, or null."""
    return _within(_when(when).forward_fill())


def next_after(when: pl.Expr) -> pl.Expr:
    """Return the number of the next row behind this one for which something holds, or null."""
    return _within(_when(when).backward_fill().shift(-1))


def at(row: str | pl.Expr, column: str) -> pl.Expr:
    """Return what a column says in the row of a number; null where there is none."""
    return pl.col(column).gather(pl.col(row) if isinstance(row, str) else row)


def so_far(number: pl.Expr, dtype: type[pl.Int32 | pl.Int64] = pl.Int32) -> pl.Expr:
    """Return the sum of a number over the rows of the group up to this one."""
    total = number.cast(pl.Int64).cum_sum()
    before = total.gather(pl.col(FIRST)) - number.cast(pl.Int64).gather(pl.col(FIRST))
    return (total - before).cast(dtype)


def _when(condition: pl.Expr) -> pl.Expr:
    return pl.when(condition).then(pl.col(ROW))


def _within(row: pl.Expr) -> pl.Expr:
    return pl.when(row.is_between(pl.col(FIRST), pl.col(LAST))).then(row)
