"""Epochs of groups, cut where the partitions of their topics changed meanwhile."""

from __future__ import annotations

import polars as pl

_AT = ("group_id", "epoch_no")


def stretches(epochs: pl.DataFrame, wants: pl.DataFrame, sizes: pl.DataFrame) -> pl.DataFrame:
    """Cut epochs at the times when a topic that a member wants grew, came or went.

    Args:
        epochs: `group_id`, `epoch_no` and whatever else of an epoch, `from_timestamp` and
            `to_timestamp` among it.
        wants: `group_id`, `epoch_no`, `wants` (list of topics) of members.
        sizes: `topic_sizes`.

    Returns:
        The columns of `epochs`, with the times of the stretch, and `span`.
    """
    changes = pl.concat(
        sizes.select("topic", pl.col(time).alias("change")) for time in ("since", "until")
    ).drop_nulls("change")
    wanted = wants.select(*_AT, pl.col("wants").alias("topic")).explode("topic").unique()
    begins, ends = pl.col("from_timestamp"), pl.col("to_timestamp")
    cuts = (
        epochs.select(*_AT, "from_timestamp", "to_timestamp")
        .join(wanted, on=_AT)
        .join(changes, on="topic")
        .filter((pl.col("change") > begins) & (ends.is_null() | (pl.col("change") < ends)))
        .select(*_AT, pl.col("change").alias("begins"))
    )
    starts = pl.concat([epochs.select(*_AT, begins.alias("begins")), cuts]).unique()
    return (
        starts.sort(*_AT, "begins", nulls_last=False)
        .with_columns(
            pl.col("begins").shift(-1).over(_AT).alias("ends"),
            pl.int_range(1, pl.len() + 1).over(_AT).alias("piece"),
        )
        .join(epochs, on=_AT)
        .with_columns(
            pl.format("{}:{}", "epoch_no", "piece").alias("span"),
            pl.col("begins").alias("from_timestamp"),
            pl.coalesce("ends", "to_timestamp").alias("to_timestamp"),
        )
        .drop("begins", "ends", "piece")
    )


def sizes_in(spans: pl.DataFrame, sizes: pl.DataFrame) -> pl.DataFrame:
    """Return the topics there were while a stretch began: `span`, `group_id`, and the topic.

    Args:
        spans: `stretches` with `topic`: each with each topic it needs.
        sizes: `topic_sizes`.
    """
    begins, since, until = (pl.col(name) for name in ("from_timestamp", "since", "until"))
    there = (since.is_null() | (since <= begins)) & (until.is_null() | (until > begins))
    return spans.join(sizes, on="topic").filter(there).drop("since", "until")
