"""The record of a group that came last before another one, or comes next, and is such or such.

Frames are sorted by group and offset, with `ROW` numbering their rows and `FIRST` and `LAST` the
rows with which the group of a row begins and ends. A neighbour is told by the number of its row.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import polars as pl

from analytics.replay.groups.group_records import GROUP_KEY

if TYPE_CHECKING:
    from collections.abc import Sequence

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
