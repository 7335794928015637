"""Epochs of groups, cut where the partitions of their topics changed meanwhile."""

from __future__ import annotations

import polars as pl

from analytics.questions.balance.cases.at_instant import SPAN
from analytics.replay.history.neighbours import EPOCH


def stretches(
    epochs: pl.DataFrame, subscriptions: pl.DataFrame, sizes: pl.DataFrame
) -> pl.DataFrame:
    """Cut epochs at the times when a topic that a member wants grew, came or went.

    Args:
        epochs: `EPOCH` and whatever else of an epoch, `from_timestamp` and `to_timestamp` among it.
        subscriptions: `EPOCH`, `subscriptions` (list of topics) of members.
        sizes: `topic_sizes`.

    Returns:
        The columns of `epochs`, with the times of the stretch, and `SPAN`.
    """
    changes = pl.concat(
        sizes.select("topic", pl.col(time).alias("change")) for time in ("since", "until")
    ).drop_nulls("change")
    wanted = (
        subscriptions.select(EPOCH, pl.col("wants").alias("topic"))
        .explode("topic")
        .filter(pl.col("topic").is_in(changes["topic"].unique().implode()))
        .unique()
    )
    begins, ends = pl.col("from_timestamp"), pl.col("to_timestamp")
    cuts = (
        epochs.select(EPOCH, "from_timestamp", "to_timestamp")
        .join(wanted, on=EPOCH)
        .join(changes, on="topic")
        .filter((pl.col("change") > begins) & (ends.is_null() | (pl.col("change") < ends)))
        .select(EPOCH, pl.col("change").alias("begins"))
    )
    starts = pl.concat([epochs.select(EPOCH, begins.alias("begins")), cuts.unique()])
    goes_on = pl.col(EPOCH) == pl.col(EPOCH).shift(-1)
    return (
        starts.sort(EPOCH, "begins", nulls_last=False)
        .with_columns(pl.when(goes_on).then(pl.col("begins").shift(-1)).alias("ends"))
        .with_row_index(SPAN)
        .join(epochs, on=EPOCH, maintain_order="left")
        .with_columns(
            pl.col("begins").alias("from_timestamp"),
            pl.coalesce("ends", "to_timestamp").alias("to_timestamp"),
        )
        .drop("begins", "ends")
    )


def sizes_in(spans: pl.DataFrame, sizes: pl.DataFrame) -> pl.DataFrame:
    """Return the topics there were while a stretch began, each with what is told of the stretch.

    Args:
        spans: `from_timestamp` of stretches and a `topic`: each with each topic it needs.
        sizes: `topic_sizes`.
    """
    begins, since, until = (pl.col(name) for name in ("from_timestamp", "since", "until"))
    there = (since.is_null() | (since <= begins)) & (until.is_null() | (until > begins))
    return spans.join(sizes, on="topic").filter(there).drop("since", "until")
