"""Whether a topic was gone when its offsets went, of which the metadata log may not tell."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark.sql import functions as F

from analytics.replay.log.as_of import Decoded
from analytics.replay.log.coverage import Coverage
from analytics.replay.log.stored_values import uuid
from analytics.replay.metadata.metadata_log import told_from
from analytics.replay.metadata.topic_sources import METADATA_LOG, PARTITION_METADATA

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame, SparkSession


def with_topic_absence(
    removed: DataFrame, topics: DataFrame, decoded: Decoded, present: DataFrame | None = None
) -> DataFrame:
    """Add whether a topic is gone for which no metadata log says when it went.

    Snapshots cut the metadata log: of what was removed before its first record it only tells which
    topics outlived that, and a topic of that name may be another one by then.

    Args:
        removed: Has `topic`, `at`, and `removed` with its `topic_id`.
        topics: The state table.
        decoded: Decoded tables, cut at the same instant.
        present: What `topics_present` returns.

    Returns:
        The rows with `topic_absent`: false where a metadata log tells of that time or the topic
        under that id is there, null where nothing says. A directory of that name may be of a topic
        that was created again.
    """
    there = topics.where(F.col("source") == PARTITION_METADATA).select("topic", "topic_id")
    if present is not None:
        unnamed = F.lit(None).cast("string").alias("topic_id")
        there = there.unionByName(present.select("topic", unnamed))
    there = there.groupBy("topic").agg(F.collect_set("topic_id").alias("ids_there"))
    is_absent = F.col("ids_there").isNull() if present is not None else F.lit(None).cast("boolean")
    tells_then = F.col("tells") & (
        F.col("tells_from").isNull() | (F.col("at") >= F.col("tells_from"))
    )
    named = uuid(F.col("removed.topic_id"))
    is_another = F.when(
        named.isNotNull() & (F.size("ids_there") > 0), ~F.array_contains("ids_there", named)
    )
    without_log = F.when(F.col("ids_there").isNotNull(), is_another).otherwise(is_absent)
    rows = (
        removed.join(F.broadcast(there), "topic", "left")
        .join(F.broadcast(told_from(decoded)), how="cross")
        .join(F.broadcast(_outliving(topics)), "topic", "left")
    )
    return rows.withColumn(
        "topic_absent",
        F.when(F.coalesce(tells_then, F.lit(col=False)), F.lit(col=False))
        .when(F.col("tells"), _went_before_the_log())
        .otherwise(without_log),
    ).drop("ids_there", "tells", "tells_from", "ids")


def topics_present(spark: SparkSession, coverage: Coverage) -> DataFrame | None:
    """Return `topic` of the data directories in the dump; None where others may be there too."""
    if coverage.data_topics is None:
        return None
    named = [(each,) for each in sorted(coverage.data_topics)]
    return spark.createDataFrame(named, "topic string")


def _outliving(topics: DataFrame) -> DataFrame:
    """Return `topic` and `ids` of those that were there when the metadata log began."""
    at_its_start = (F.col("source") == METADATA_LOG) & F.col("created_at").isNull()
    return topics.where(at_its_start).groupBy("topic").agg(F.collect_set("topic_id").alias("ids"))


def _went_before_the_log() -> Column:
    """Return whether a topic was gone when the metadata log began; null where names hide it."""
    named = uuid(F.col("removed.topic_id"))
    return F.when(F.col("ids").isNull(), F.lit(col=True)).when(
        named.isNotNull(), ~F.array_contains("ids", named)
    )
