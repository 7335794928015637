"""The table `coordinator_epochs`: who coordinated each internal partition, and from where to where.

The leader epoch of a batch is that of the broker that wrote it; who that was only the metadata log
tells.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark.sql import Window
from pyspark.sql import functions as F

from analytics.replay.contract import as_table
from analytics.replay.log.as_of import Decoded
from analytics.replay.union import union_all

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

INTERNAL = ("__consumer_offsets", "__share_group_state", "__transaction_state")
KEY = ("topic", "partition", "leader_epoch")
_TABLES = ("offset_commit", "control_markers", "share_snapshot", "share_update", "transaction_log")


def coordinator_epochs(decoded: Decoded, log: DataFrame, elected: DataFrame) -> DataFrame:
    """Return the table `coordinator_epochs`.

    Args:
        decoded: Decoded tables, cut at an instant.
        log: Their `coordinator_log`.
        elected: Of `elections`, up to the same instant.
    """
    about_groups = log.select(
        F.lit(INTERNAL[0]).alias("topic"),
        F.col("coordinator_partition").alias("partition"),
        "position.leader_epoch",
        "offset",
        "timestamp",
    )
    others = (decoded[name].select(*KEY, "offset", "timestamp") for name in _TABLES)
    light = union_all((about_groups, *others))
    found = (
        light.where(F.col("topic").isin(*INTERNAL) & F.col("leader_epoch").isNotNull())
        .groupBy(*KEY)
        .agg(
            F.min("offset").alias("from_offset"),
            F.max("offset").alias("last_offset"),
            F.min_by("timestamp", "offset").alias("from_timestamp"),
            F.max_by("timestamp", "offset").alias("last_timestamp"),
            F.count(F.lit(1)).alias("records"),
        )
    )
    order = Window.partitionBy("topic", "partition").orderBy("leader_epoch")
    lasts = F.lead("leader_epoch").over(order).isNull()
    leaders = elected.where(F.col("topic").isin(*INTERNAL)).select(
        *KEY, "leader", "unclean", F.col("since").alias("elected_at")
    )
    rows = (
        found.withColumn("lasts", lasts)
        .withColumn("to_offset", F.when(~F.col("lasts"), F.col("last_offset")))
        .withColumn("to_timestamp", F.when(~F.col("lasts"), F.col("last_timestamp")))
        .join(F.broadcast(leaders), list(KEY), "left")
    )
    return as_table(rows, "coordinator_epochs")
