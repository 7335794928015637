"""Who leads every partition, from the metadata log (``PartitionRegistration.merge``).

A partition record is the whole registration; changes are merged into it. A leader epoch grows with
every change that names a leader, even the same one.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark.sql import functions as F

from analytics.replay.contract import as_table
from analytics.replay.log.stored_values import present
from analytics.replay.metadata.metadata_log import MetadataLog

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

UNCHANGED_LEADER = -2
UNCHANGED_RECOVERY = -1
RECOVERING = 1
"""LeaderRecoveryState: the leader was elected from outside the ISR."""

KEY = ("topic_id", "partition")


def partition_leaders(log: MetadataLog) -> DataFrame:
    """Return the table `partition_leaders` as of the instant of a metadata log."""
    steps = partition_steps(log)
    base = steps.where("is_base").groupBy(*KEY).agg(F.max("at").alias("base_at"))
    merged = (
        steps.join(base, list(KEY), "inner")
        .where(F.col("at") >= F.col("base_at"))
        .groupBy(*KEY)
        .agg(
            _latest("leader"),
            _latest("recovery"),
            _latest("isr"),
            _latest("elr"),
            F.max("base_epoch").alias("base_epoch"),
            F.count(F.when(~F.col("is_base"), F.col("leader"))).alias("elections"),
            F.max_by("since", F.when(F.col("leader").isNotNull(), F.col("at"))).alias("since"),
            F.max_by("metadata_offset", F.when(F.col("leader").isNotNull(), F.col("at"))).alias(
                "metadata_offset"
            ),
        )
    )
    rows = merged.join(_living_topics(log), "topic_id", "inner").select(
        "topic",
        "partition",
        present(F.col("leader")).alias("leader"),
        (F.col("base_epoch") + F.col("elections")).alias("leader_epoch"),
        "isr",
        "elr",
        (F.col("recovery") == RECOVERING).alias("unclean"),
        "since",
        "metadata_offset",
    )
    return as_table(rows, "partition_leaders")


def partition_steps(log: MetadataLog) -> DataFrame:
    """Return registrations, changes and clearings of partitions (``PartitionRegistration.merge``).

    Args:
        log: The metadata log at an instant.

    Returns:
        `topic_id`, `partition`; `at`, `since`, `metadata_offset` as of `MetadataLog.visible`;
        `is_base` (boolean: a whole registration) and its `base_epoch`; `leader` (-1: nobody),
        `recovery`, `isr`, `elr`, `replicas`: null where unchanged, and the last one in
        registrations.
    """
    order = ("at", "since", "metadata_offset")
    value = F.col("value")
    whole = log.visible("partition_record").select(
        value["topic_id"].alias("topic_id"),
        value["partition_id"].alias("partition"),
        *order,
        F.lit(col=True).alias("is_base"),
        value["leader"].alias("leader"),
        value["leader_epoch"].alias("base_epoch"),
        value["leader_recovery_state"].alias("recovery"),
        value["isr"].alias("isr"),
        F.coalesce(value["eligible_leader_replicas"], _none()).alias("elr"),
    )
    changes = log.visible("partition_change_record").select(
        value["topic_id"].alias("topic_id"),
        value["partition_id"].alias("partition"),
        *order,
        F.lit(col=False).alias("is_base"),
        present(value["leader"], UNCHANGED_LEADER).alias("leader"),
        F.lit(None).cast("int").alias("base_epoch"),
        present(value["leader_recovery_state"], UNCHANGED_RECOVERY).alias("recovery"),
        value["isr"].alias("isr"),
        value["eligible_leader_replicas"].alias("elr"),
        value["replicas"].alias("replicas"),
    )
    cleared = _clearings(log, whole)
    return changes.unionByName(whole, allowMissingColumns=True).unionByName(
        cleared, allowMissingColumns=True
    )


def _clearings(log: MetadataLog, registered: DataFrame) -> DataFrame:
    """Return ClearElr records for each partition they empty the list of; no name means all."""
    cleared = log.visible("clear_elr_record").select(
        F.col("value.topic_name").alias("cleared"), "at"
    )
    named = registered.select(*KEY).distinct().join(_living_topics(log), "topic_id", "inner")
    every = (F.col("cleared") == "") | (F.col("cleared") == F.col("topic"))
    return named.join(F.broadcast(cleared), every, "inner").select(
        *KEY, "at", F.lit(col=False).alias("is_base"), _none().alias("elr")
    )


def _living_topics(log: MetadataLog) -> DataFrame:
    named = log.visible("topic_record").select(
        F.col("value.topic_id").alias("topic_id"), F.col("value.name").alias("topic")
    )
    removed = log.visible("remove_topic_record").select(F.col("value.topic_id").alias("topic_id"))
    return named.join(removed, "topic_id", "left_anti")


def _latest(column: str) -> Column:
    """Return the last value that a step gave."""
    return F.max_by(column, F.when(F.col(column).isNotNull(), F.col("at"))).alias(column)


def _none() -> Column:
    return F.array().cast("array<int>")
