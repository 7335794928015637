"""What befell the partitions of topics: births, elections, elections that may have lost records."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark.sql import Window
from pyspark.sql import functions as F

from analytics.replay.log.stored_values import present
from analytics.replay.metadata.partition_leaders import RECOVERING, partition_steps

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

    from analytics.replay.metadata.metadata_log import MetadataLog

NOBODY = -1


def births(topics: DataFrame) -> DataFrame:
    """Return `topic` and `born_at`: when topics of that name were created, as far as is known."""
    born = topics.where("created_at is not null")
    return born.select("topic", F.col("created_at").alias("born_at"))


def elections(log: MetadataLog, topics: DataFrame) -> DataFrame:
    """Return every election of a leader (``PartitionRegistration.merge``).

    Args:
        log: The metadata log at the instant.
        topics: The table `topics`, for names.

    Returns:
        `topic`, `topic_id`, `partition`, `leader_epoch`, `leader` (null: nobody), `unclean`
        (boolean: elected from outside the ISR), `takes_over` (boolean: another broker led before),
        `since` and `at` (bigint: the place in the order of the metadata log's events).
    """
    order = Window.partitionBy("topic_id", "partition").orderBy("at")
    so_far = order.rowsBetween(Window.unboundedPreceding, Window.currentRow)
    before = order.rowsBetween(Window.unboundedPreceding, -1)
    leads = F.when(F.col("leader") != NOBODY, F.col("leader"))
    names = (
        topics.where("topic_id is not null").groupBy("topic_id").agg(F.max("topic").alias("topic"))
    )
    were = ("recovery", "isr", "elr")
    return (
        partition_steps(log)
        .withColumns(
            {f"{each}_before": F.last(each, ignorenulls=True).over(before) for each in were}
        )
        .where("leader is not null")
        .withColumn("base", F.last("base_epoch", ignorenulls=True).over(so_far))
        .withColumn("life", F.sum(F.col("is_base").cast("int")).over(so_far))
        .withColumn("led_before", F.last(leads, ignorenulls=True).over(before))
        .withColumn("nth", F.row_number().over(order) - F.col("life"))
        .join(F.broadcast(names), "topic_id")
        .select(
            "topic",
            "topic_id",
            "partition",
            (F.col("base") + F.col("nth")).alias("leader_epoch"),
            present(F.col("leader"), NOBODY).alias("leader"),
            _is_unclean().alias("unclean"),
            F.coalesce(F.col("leader") != F.col("led_before"), F.lit(col=False)).alias(
                "takes_over"
            ),
            "since",
            "at",
        )
    )


def _is_unclean() -> Column:
    """Return whether a leader was elected from outside the ISR.

    The record says so by putting the leader into recovery. Where it was in recovery already
    another such election says nothing: the leader was neither in sync nor eligible, and is alone in
    sync. With new replicas that is a reassignment coming to its end.
    """
    nobody = F.array().cast("array<int>")
    outside = ~F.array_contains(F.coalesce("isr_before", nobody), F.col("leader")) & (
        ~F.array_contains(F.coalesce("elr_before", nobody), F.col("leader"))
    )
    again = (
        (F.col("recovery_before") == RECOVERING)
        & (F.col("leader") != NOBODY)
        & outside
        & (F.col("isr") == F.array("leader"))
        & F.col("replicas").isNull()
        & ~F.col("is_base")
    )
    told = F.coalesce(F.col("recovery") == RECOVERING, again)
    return F.coalesce(told, F.lit(col=False))


def losses(elected: DataFrame) -> DataFrame:
    """Return when unclean elections may have cost records.

    A broker that leads again after having been down, with nobody in its place meanwhile, has what
    it had; brokers of one replica restart so.

    Args:
        elected: Of `elections`.

    Returns:
        `topic`, `partition`, `elected_at`.
    """
    costly = elected.where("unclean and takes_over")
    return costly.select("topic", "partition", F.col("since").alias("elected_at"))
