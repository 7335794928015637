"""Epochs of groups, cut where the partitions of their topics changed meanwhile."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark.sql import Window
from pyspark.sql import functions as F

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


def stretches(epochs: DataFrame, wants: DataFrame, sizes: DataFrame) -> DataFrame:
    """Cut epochs at the times when a topic that a member wants grew, came or went.

    Args:
        epochs: `group_id`, `epoch_no` and whatever else of an epoch, `from_timestamp` and
            `to_timestamp` among it.
        wants: `group_id`, `epoch_no`, `wants` (array of topics) of members.
        sizes: `topic_sizes`.

    Returns:
        The columns of `epochs`, with the times of the stretch, and `span`.
    """
    changes = sizes.select("topic", F.explode(F.array("since", "until")).alias("change")).where(
        "change is not null"
    )
    wanted = wants.select("group_id", "epoch_no", F.explode("wants").alias("topic")).distinct()
    at = ["group_id", "epoch_no"]
    cuts = (
        epochs.select(*at, "from_timestamp", "to_timestamp")
        .join(wanted, at)
        .join(changes, "topic")
        .where("change > from_timestamp and (to_timestamp is null or change < to_timestamp)")
        .select(*at, F.col("change").alias("begins"))
    )
    starts = (
        epochs.select(*at, F.col("from_timestamp").alias("begins")).unionByName(cuts).distinct()
    )
    order = Window.partitionBy(*at).orderBy(F.col("begins").asc_nulls_first())
    return (
        starts.withColumn("ends", F.lead("begins").over(order))
        .withColumn("piece", F.row_number().over(order))
        .join(epochs, at)
        .withColumn("span", F.concat_ws(":", "epoch_no", "piece"))
        .withColumn("from_timestamp", F.col("begins"))
        .withColumn("to_timestamp", F.coalesce("ends", "to_timestamp"))
        .drop("begins", "ends", "piece")
    )


def sizes_in(spans: DataFrame, sizes: DataFrame) -> DataFrame:
    """Return the topics there were while a stretch began: `span`, `group_id`, and the topic.

    Args:
        spans: `stretches` with `topic`: each with each topic it needs.
        sizes: `topic_sizes`.
    """
    begins = F.col("from_timestamp")
    there = (F.col("since").isNull() | (F.col("since") <= begins)) & (
        F.col("until").isNull() | (F.col("until") > begins)
    )
    return spans.join(sizes, "topic").where(there).drop("since", "until")
