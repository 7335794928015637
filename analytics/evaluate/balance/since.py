"""What history adds to groups at an instant: since when, what moved, what was done meanwhile."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark.sql import functions as F

from analytics.evaluate.balance.cases import SPAN

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


def with_epoch(cases: DataFrame, epochs: DataFrame) -> DataFrame:
    """Add when the present epoch began, and what it moved.

    Args:
        cases: `cases_at`.
        epochs: The table `group_epochs` at the same instant.

    Returns:
        The cases with `from_offset`, `from_timestamp` and `moved`; null where history is silent.
    """
    last = epochs.groupBy("group_id").agg(
        F.max_by(
            F.struct("epoch", "from_offset", "from_timestamp", "partitions_moved"), "from_offset"
        ).alias("at")
    )
    of_epoch = F.col("at.epoch") == F.col("epoch")
    return (
        cases.drop("from_offset", "from_timestamp")
        .join(last, "group_id", "left")
        .withColumn("from_offset", F.when(of_epoch, F.col("at.from_offset")))
        .withColumn("from_timestamp", F.when(of_epoch, F.col("at.from_timestamp")))
        .withColumn("moved", F.when(of_epoch, F.col("at.partitions_moved")))
        .drop("at")
    )


def with_progress(cases: DataFrame, offset_history: DataFrame) -> DataFrame:
    """Add how far commits advanced each partition in the time that a case stands for.

    Args:
        cases: With `from_timestamp` and `to_timestamp`; a null is no bound.
        offset_history: The table. Steps back do not count.

    Returns:
        The cases with `progress`: array of `topic`, `partition`, `advance`; null without commits.
    """
    commits = offset_history.where("advance > 0").select(
        "group_id", "topic", "partition", "advance", "effective_timestamp"
    )
    at = F.col("effective_timestamp")
    during = (F.col("from_timestamp").isNull() | (at >= F.col("from_timestamp"))) & (
        F.col("to_timestamp").isNull() | (at < F.col("to_timestamp"))
    )
    times = cases.select(*SPAN, "from_timestamp", "to_timestamp")
    advanced = (
        times.join(commits, "group_id")
        .where(during)
        .groupBy(*SPAN, "topic", "partition")
        .agg(F.sum("advance").alias("advance"))
        .groupBy(*SPAN)
        .agg(F.collect_list(F.struct("topic", "partition", "advance")).alias("progress"))
    )
    return cases.join(advanced, list(SPAN), "left")
