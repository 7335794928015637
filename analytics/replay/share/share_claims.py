"""Which share partitions the groups claim (``ShareGroupStatePartitionMetadata``).

Each such record is the whole picture of its group, not a change. 4.0 never writes one: there a
share group that lives is all the claim there is.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark.sql import functions as F

from analytics.replay.log.latest import last_offsets, later, records_at

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from analytics.replay.log.as_of import Decoded

INITIALIZED, INITIALIZING, DELETING, ORPHAN = "initialized", "initializing", "deleting", "orphan"
UNKNOWN = "unknown"
GROUP = ("coordinator_partition", "group_id")


def claimed_partitions(decoded: Decoded) -> DataFrame:
    """Return `group_id`, `topic_id`, `partition` and `claim`: initialized or initializing."""
    pictures = _pictures(decoded)
    claims = None
    for claim in (INITIALIZED, INITIALIZING):
        topics = pictures.select("group_id", F.explode(f"value.{claim}_topics").alias("topic"))
        claimed = topics.select(
            "group_id", "topic.topic_id", F.explode("topic.partitions").alias("partition")
        ).withColumn("claim", F.lit(claim))
        claims = claimed if claims is None else claims.unionByName(claimed)
    assert claims is not None
    # A partition in both has its state already; "initialized" comes first.
    return claims.groupBy("group_id", "topic_id", "partition").agg(F.min("claim").alias("claim"))


def deleted_topics(decoded: Decoded) -> DataFrame:
    """Return `group_id` and `topic_id` of topics whose state is being deleted."""
    return (
        _pictures(decoded)
        .select("group_id", F.explode("value.deleting_topics").alias("topic"))
        .select("group_id", "topic.topic_id")
        .distinct()
    )


def early_groups(decoded: Decoded) -> DataFrame:
    """Return `group_id` of share groups that live and never had a picture written."""
    pictured = _keyed(decoded, "share_group_state_partition_metadata").select("group_id")
    living = _living(decoded, "share_group_metadata").select("group_id").distinct()
    return living.join(pictured, "group_id", "left_anti")


def pictured_groups(decoded: Decoded) -> DataFrame:
    """Return `group_id` and `pictured_at`, the offset of the last record of its picture."""
    pictures = _keyed(decoded, "share_group_state_partition_metadata")
    return pictures.groupBy("group_id").agg(F.max("offset").alias("pictured_at"))


def _pictures(decoded: Decoded) -> DataFrame:
    name = "share_group_state_partition_metadata"
    return records_at(decoded[name], _living(decoded, name)).select("group_id", "value")


def _living(decoded: Decoded, name: str) -> DataFrame:
    """Groups whose last record is a value: `GROUP` and its `record_offset`."""
    last = last_offsets(_keyed(decoded, name), GROUP)
    return last.where(later(F.col("last_value"), F.col("last_tombstone"))).select(
        *GROUP, F.col("last_value").alias("record_offset")
    )


def _keyed(decoded: Decoded, name: str) -> DataFrame:
    return decoded[name].select(
        F.col("partition").alias("coordinator_partition"),
        F.col("key.group_id").alias("group_id"),
        "offset",
        "is_tombstone",
    )
