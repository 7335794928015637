"""Which assignor a consumer group used in each epoch: the one that most of its members named.

As ``ConsumerGroup.preferredServerAssignor`` has it; `analytics.replay.groups.group_rows` tells
the same of the present.
"""

from __future__ import annotations

import polars as pl

from analytics.replay.groups.group_records import GROUP_KEY
from analytics.replay.groups.item_kinds import ASSIGNOR
from analytics.replay.history.groups.epoch_counts import EPOCH_KEY

_LIFE = (*GROUP_KEY, "life")


def with_preferred_assignor(epochs: pl.DataFrame, intervals: pl.DataFrame) -> pl.DataFrame:
    """Add `assignor`: what most members that were there at the end of an epoch named, or null.

    Args:
        epochs: `EPOCH_KEY` and more.
        intervals: Of `assignment_intervals`.
    """
    named = intervals.filter(pl.col("kind") == ASSIGNOR)
    until = pl.col("until")
    gone = named.filter(until.is_not_null() & ~until.struct.field("is_closing"))
    changes = (
        pl.concat([_changes(named, "at", 1), _changes(gone, "until", -1)])
        .group_by(*EPOCH_KEY, "assignor")
        .agg(pl.col("delta").sum())
    )
    votes = (
        epochs.select(EPOCH_KEY)
        .join(changes.select(*_LIFE, "assignor").unique(), on=_LIFE)
        .join(changes, on=(*EPOCH_KEY, "assignor"), how="left")
        .sort(*EPOCH_KEY, "assignor")
        .with_columns(
            pl.col("delta").fill_null(0).cum_sum().over(*_LIFE, "assignor").alias("votes")
        )
    )
    # Of two that are named by as many, the one whose name comes last.
    preferred = (
        votes.filter(pl.col("votes") > 0)
        .sort("votes", "assignor")
        .group_by(EPOCH_KEY)
        .agg(pl.col("assignor").last())
    )
    return epochs.join(preferred, on=EPOCH_KEY, how="left")


def _changes(intervals: pl.DataFrame, place: str, delta: int) -> pl.DataFrame:
    return intervals.select(
        *_LIFE,
        pl.col(place).struct.field("epoch_no"),
        pl.col("topic").alias("assignor"),
        pl.lit(delta, pl.Int32).alias("delta"),
    )
