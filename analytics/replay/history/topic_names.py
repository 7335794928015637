"""Names for the topic ids in what members held and groups depend on."""

from __future__ import annotations

import polars as pl


def named_topics(topics: pl.DataFrame) -> pl.DataFrame:
    """Return `topic_id` and `topic`, each pair once, of the table `topics`."""
    return topics.select("topic_id", "topic").drop_nulls("topic_id").unique()


def topic_names(named: pl.DataFrame) -> pl.DataFrame:
    """Return `topic_id` and `name`, each id once.

    Args:
        named: Of `named_topics`.
    """
    return named.group_by("topic_id").agg(pl.col("topic").max().alias("name"))
