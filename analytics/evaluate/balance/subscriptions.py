"""What members of groups want, beyond what their own records name."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from pyspark.sql import functions as F

from analytics.replay.log.latest import last_offsets, later, records_at

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

_GROUP = ("coordinator_partition", "group_id")


def resolved_expressions(decoded: Mapping[str, DataFrame]) -> DataFrame:
    """Return the topics that regular expressions stand for, as the coordinator resolved them.

    Args:
        decoded: Tables cut at the instant.

    Returns:
        `group_id`, `subscribed_regex`, `resolved` (array of topic names).
    """
    records = decoded["consumer_group_regular_expression"].withColumns(
        {
            "coordinator_partition": F.col("partition"),
            "group_id": F.col("key.group_id"),
            "subscribed_regex": F.col("key.regular_expression"),
        }
    )
    key = (*_GROUP, "subscribed_regex")
    return _in_force(records, key).select(
        "group_id", "subscribed_regex", F.col("value.topics").alias("resolved")
    )


def subtopologies(decoded: Mapping[str, DataFrame]) -> DataFrame:
    """Return what each subtopology of a streams group reads.

    Args:
        decoded: Tables cut at the instant.

    Returns:
        `group_id`, `subtopology_id`, `sources` (array of topic names), `by_regex` (boolean: some
        topics are named by regular expressions only).
    """
    records = decoded["streams_group_topology"].withColumns(
        {"coordinator_partition": F.col("partition"), "group_id": F.col("key.group_id")}
    )
    parts = _in_force(records, _GROUP).select(
        "group_id", F.explode("value.subtopologies").alias("part")
    )
    part = F.col("part")
    return parts.select(
        "group_id",
        part["subtopology_id"].alias("subtopology_id"),
        F.concat(part["source_topics"], part["repartition_source_topics"]["name"]).alias("sources"),
        (F.size(part["source_topic_regex"]) > 0).alias("by_regex"),
    )


def _in_force(records: DataFrame, key: tuple[str, ...]) -> DataFrame:
    """Return the last record of each key that is no tombstone's victim."""
    last = last_offsets(records, key).where(later(F.col("last_value"), F.col("last_tombstone")))
    places = last.select("coordinator_partition", F.col("last_value").alias("record_offset"))
    keyed = records.drop("coordinator_partition")
    return records_at(keyed, places)
