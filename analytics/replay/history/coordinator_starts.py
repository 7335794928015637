"""When coordinators began: elected for their partition, or started again while they led it.

A broker that is killed and back before another one is elected goes on with its leader epoch: only
that it registers with another incarnation tells (``ClusterControlManager.registerBroker``). What it
kept in memory is gone all the same, and its cleanups begin anew.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark.sql import Window
from pyspark.sql import functions as F

from analytics.replay.history.data_partitions import elections

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

    from analytics.replay.metadata.metadata_log import MetadataLog

OFFSETS_TOPIC = "__consumer_offsets"


def coordinator_starts(log: MetadataLog, topics: DataFrame) -> DataFrame:
    """Return every beginning of a coordinator of offsets that the metadata log tells.

    They are few, and computed here and now.

    Args:
        log: The metadata log at the instant.
        topics: The state table `topics`.

    Returns:
        `coordinator_partition`, `leader_epoch`, `leader`, `started_at` (timestamp; null where it
        was before the first record), `is_restart` (boolean: the broker started again within the
        epoch), `idle_since` (timestamp: until when the leader before had led; null where that is
        not known) and `broker_starts` (array of timestamps: when that broker started, at any time).
    """
    elected = elections(log, topics.where(F.col("topic") == OFFSETS_TOPIC))
    order = Window.partitionBy("topic_id", "partition").orderBy("at")
    nobody_since = F.when(F.lag("leader").over(order).isNull(), F.lag("since").over(order))
    is_first = F.lag("at").over(order).isNull()
    led = (
        elected.withColumn("until", F.lead("at").over(order))
        .withColumn("idle_since", F.when(~is_first, F.coalesce(nobody_since, "since")))
        .where("leader is not null")
    )
    known = led.join(F.broadcast(_broker_starts(log)), "leader", "left")
    beginnings = F.concat(
        F.array(
            F.struct(
                F.col("since").alias("started_at"),
                F.lit(col=False).alias("is_restart"),
                "idle_since",
            )
        ),
        F.coalesce(F.transform(_restarts(), _as_restart), F.array()),
    )
    return known.select(
        F.col("partition").alias("coordinator_partition"),
        "leader_epoch",
        "leader",
        F.inline(beginnings),
        F.transform("starts", lambda start: start["since"]).alias("broker_starts"),
    ).localCheckpoint()


def _restarts() -> Column:
    """Return the starts of the leader within its epoch: one before it was there to be elected."""
    until = F.col("until")
    return F.filter(
        "starts",
        lambda start: (start["at"] > F.col("at")) & (until.isNull() | (start["at"] < until)),
    )


def _as_restart(start: Column) -> Column:
    # When it was killed no record says.
    return F.struct(
        start["since"].alias("started_at"),
        F.lit(col=True).alias("is_restart"),
        F.lit(None).cast("timestamp").alias("idle_since"),
    )


def _broker_starts(log: MetadataLog) -> DataFrame:
    """Return `leader` and `starts`: where and when brokers registered with another incarnation.

    What a snapshot holds tells an incarnation, not when it began.
    """
    value = F.col("value")
    said = log.visible("register_broker_record").select(
        value["broker_id"].alias("leader"),
        value["incarnation_id"].alias("incarnation"),
        "at",
        "since",
    )
    order = Window.partitionBy("leader").orderBy("at")
    is_new = ~F.col("incarnation").eqNullSafe(F.lag("incarnation").over(order))
    return (
        said.withColumn("is_new", is_new)
        .where("is_new and since is not null")
        .groupBy("leader")
        .agg(F.array_sort(F.collect_list(F.struct("at", "since"))).alias("starts"))
    )
