"""The history of offsets in the order in which its changes took effect, place by place."""

from __future__ import annotations

from functools import cached_property

import polars as pl

from analytics.questions.timeline.words import PLACE

TRANSACTION_COMMIT = "transaction_commit"
COMMITS = ("commit", TRANSACTION_COMMIT)
ABORT, DELETE = "transaction_abort", "delete"

NEEDED = (
    *(*PLACE, "event", "topic_id", "committed_offset", "stored_offset", "previous_offset"),
    *("advance", "commit_timestamp", "effective_offset", "effective_timestamp", "epoch"),
    *("member_id", "cause", "confidence", "group_members", "complete", "missing"),
    *("coordinator_partition", "record_offset"),
)
"""What is read of the table `offset_history`."""
IS_COMMIT = pl.col("event").is_in(COMMITS)


class OffsetHistory:
    """Changes of committed offsets, those of one place in the order in which they took effect.

    Attributes:
        rows: `NEEDED`, with `index` (of the row) and `place` (a number for each place), sorted.
    """

    def __init__(self, rows: pl.DataFrame) -> None:
        """Sort the changes.

        Args:
            rows: `NEEDED` of whole groups. Aborted transactions changed nothing, and are left out.
        """
        order = [*PLACE, "effective_offset"]
        effective = rows.filter(pl.col("event") != ABORT).sort(order, maintain_order=True)
        is_first = pl.any_horizontal(pl.col(name) != pl.col(name).shift() for name in PLACE)
        place = is_first.fill_null(value=True).cum_sum().alias("place")
        self.rows = effective.with_columns(place).with_row_index("index")

    @cached_property
    def first_changes(self) -> pl.DataFrame:
        """The first change of each place."""
        return self.rows.filter(pl.col("place").ne_missing(pl.col("place").shift()))

    @cached_property
    def last_changes(self) -> pl.DataFrame:
        """The last change of each place."""
        return self.rows.filter(pl.col("place").ne_missing(pl.col("place").shift(-1)))

    @cached_property
    def in_force(self) -> pl.DataFrame:
        """The commit in force at the end of each place that has one."""
        return self.last_changes.filter(pl.col("event") != DELETE)

    @cached_property
    def incomplete(self) -> pl.DataFrame:
        """The last change of each place before which records are lost."""
        gaps = self.rows.filter(~pl.col("complete"))
        return gaps.filter(pl.col("place").ne_missing(pl.col("place").shift(-1)))

    @cached_property
    def places(self) -> pl.DataFrame:
        """`PLACE` of each place, with its number `place`."""
        return self.first_changes.select(*PLACE, "place")


def of_next_commit(name: str) -> pl.Expr:
    """Return a column as the next commit of the same place has it; null where there is none."""
    index = pl.when(IS_COMMIT).then("index").shift(-1).backward_fill()
    is_same = pl.col("place").gather(index) == pl.col("place")
    return pl.when(is_same).then(pl.col(name).gather(index))


def of_last_before(name: str) -> pl.Expr:
    """Return a column as the last change has it that took effect by an earlier record.

    Null where the place has none. One marker puts several commits in force.
    """
    is_new = pl.any_horizontal(
        pl.col(each).ne_missing(pl.col(each).shift()) for each in ("place", "effective_offset")
    )
    index = pl.when(is_new).then(pl.col("index")).forward_fill().cast(pl.Int64) - 1
    known = pl.when(index >= 0).then(index)
    is_same = pl.col("place").gather(known) == pl.col("place")
    return pl.when(is_same).then(pl.col(name).gather(known))
