"""What members of groups want, beyond what their own records name."""

from __future__ import annotations

import polars as pl


def resolved_expressions(records: pl.DataFrame) -> pl.DataFrame:
    """Return the topics that regular expressions stand for, as the coordinator resolved them.

    Args:
        records: Of `consumer_group_regular_expression`, cut at the instant: `partition`, `offset`,
            `is_tombstone`, `key`, `value`.

    Returns:
        `group_id`, `subscribed_regex`, `resolved` (list of topic names).
    """
    key, value = pl.col("key").struct, pl.col("value").struct
    named = records.with_columns(
        key.field("group_id"), key.field("regular_expression").alias("subscribed_regex")
    )
    return _in_force(named, ("group_id", "subscribed_regex")).select(
        "group_id", "subscribed_regex", value.field("topics").alias("resolved")
    )


def subtopologies(records: pl.DataFrame) -> pl.DataFrame:
    """Return what each subtopology of a streams group reads.

    Args:
        records: Of `streams_group_topology`, cut at the instant: `partition`, `offset`,
            `is_tombstone`, `key`, `value`.

    Returns:
        `group_id`, `subtopology_id`, `sources` (list of topic names), `by_regex` (boolean: some
        topics are named by regular expressions only).
    """
    named = records.with_columns(pl.col("key").struct.field("group_id"))
    part = pl.col("part").struct
    repartitioned = part.field("repartition_source_topics").list.eval(
        pl.element().struct.field("name")
    )
    return (
        _in_force(named, ("group_id",))
        .select("group_id", pl.col("value").struct.field("subtopologies").alias("part"))
        .explode("part")
        .drop_nulls("part")
        .select(
            "group_id",
            part.field("subtopology_id"),
            pl.concat_list(part.field("source_topics"), repartitioned).alias("sources"),
            (part.field("source_topic_regex").list.len() > 0).alias("by_regex"),
        )
    )


def _in_force(records: pl.DataFrame, key: tuple[str, ...]) -> pl.DataFrame:
    """Return the last record of each key that is no tombstone."""
    return (
        records.sort("partition", "offset")
        .group_by("partition", *key, maintain_order=True)
        .last()
        .filter(~pl.col("is_tombstone"))
    )
