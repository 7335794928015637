"""Names for the topic ids in what members held."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark.sql import functions as F

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


def with_topic_names(rows: DataFrame, topics: DataFrame) -> DataFrame:
    """Fill in `topic` where only `topic_id` is known.

    Args:
        rows: Has `topic` and `topic_id`.
        topics: The table `topics`; ids that it does not name stay without a name.
    """
    names = (
        topics.where("topic_id is not null").groupBy("topic_id").agg(F.max("topic").alias("name"))
    )
    named = rows.join(F.broadcast(names), "topic_id", "left")
    return named.withColumn("topic", F.coalesce("topic", "name")).drop("name")
