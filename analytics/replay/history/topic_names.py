"""Names for the topic ids in what members held and groups depend on."""

from __future__ import annotations

from typing import TYPE_CHECKING

import polars as pl

from analytics.replay.log.group_buckets import from_spark

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


def named_topics(topics: DataFrame) -> pl.DataFrame:
    """Return `topic_id` and `topic`, each pair once, of the table `topics`."""
    return from_spark(topics.select("topic_id", "topic")).drop_nulls("topic_id").unique()


def topic_names(named: pl.DataFrame) -> pl.DataFrame:
    """Return `topic_id` and `name`, each id once.

    Args:
        named: Of `named_topics`.
    """
    return named.group_by("topic_id").agg(pl.col("topic").max().alias("name"))
