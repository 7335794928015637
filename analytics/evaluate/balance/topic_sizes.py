"""How many partitions topics had, from when to when."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark.sql import Window
from pyspark.sql import functions as F

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from analytics.replay.metadata.metadata_log import MetadataLog


def topic_sizes(log: MetadataLog) -> DataFrame:
    """Return the partition counts of topics over time, as the metadata log tells them.

    Args:
        log: Cut at the instant.

    Returns:
        `topic`, `topic_id`, `partitions`, `since` (null: before the log tells), `until` (null: no
        end is known): one row for each time that partitions were added.
    """
    names = log.visible("topic_record").select("value.topic_id", F.col("value.name").alias("topic"))
    ends = log.visible("remove_topic_record").select(
        "value.topic_id", F.col("since").alias("removed")
    )
    added = (
        log.visible("partition_record")
        .groupBy("value.topic_id", "value.partition_id")
        .agg(F.min("at").alias("at"), F.min_by("since", "at").alias("since"))
    )
    # Partitions that were created together have times that differ by the batch, if at all.
    steps = added.groupBy("topic_id", "since").agg(F.count(F.lit(1)).alias("more"))
    time = Window.partitionBy("topic_id").orderBy(F.col("since").asc_nulls_first())
    so_far = time.rowsBetween(Window.unboundedPreceding, Window.currentRow)
    return (
        steps.withColumn("partitions", F.sum("more").over(so_far).cast("int"))
        .withColumn("next", F.lead("since").over(time))
        .join(names, "topic_id")
        .join(ends, "topic_id", "left")
        .select(
            "topic", "topic_id", "partitions", "since", F.coalesce("next", "removed").alias("until")
        )
    )
