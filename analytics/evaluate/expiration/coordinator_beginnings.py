"""Since when the coordinator had been at work that removed an offset, and whether it still is.

A coordinator begins its cleanups anew whenever it loads its partition, and a broker reads its
settings only when it starts: the two things that explain a removal at another time than expected.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark.sql import functions as F

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from analytics.replay.log.as_of import Decoded

EPOCH = ("coordinator_partition", "leader_epoch")
_PLACE = (*EPOCH, "at")
_STARTS = (
    "coordinator_partition int, leader_epoch int, leader int, started_at timestamp, "
    "is_restart boolean, idle_since timestamp, broker_starts array<timestamp>"
)


def with_beginning(
    removed: DataFrame, decoded: Decoded, starts: DataFrame | None = None
) -> DataFrame:
    """Add when the coordinator began that wrote a tombstone.

    Args:
        removed: Has `coordinator_partition`, `leader_epoch` and `at`.
        decoded: Decoded tables, cut at the instant.
        starts: `coordinator_starts`; None where there is no metadata log.

    Returns:
        The rows with `leader` (int: the broker; null where no metadata log tells), `began_at`
        (timestamp: when it was elected or started last before the tombstone; where no metadata log
        tells, the first record of the leader epoch), `ready_by` (timestamp: its first record since,
        by which it had loaded its partition), `by_restart` (boolean: it started again within the
        leader epoch), `idle_since` (timestamp: until when the leader before had been at work; null
        where that is not known) and `restarted_since` (timestamp: when the broker started again
        after the tombstone; null where it did not).
    """
    if starts is None:
        starts = removed.sparkSession.createDataFrame([], _STARTS)
    # An election before the metadata log begins was at no time that is known.
    unknown = F.when(F.col("leader").isNull(), F.col("first_at"))
    order = F.coalesce("started_at", "first_at")
    beginning = F.struct(
        F.coalesce("started_at", unknown).alias("began_at"),
        F.col("first_at").alias("ready_by"),
        F.col("is_restart").alias("by_restart"),
        "idle_since",
    )
    since = F.filter("broker_starts", lambda started: started > F.col("at"))
    found = (
        removed.select(*_PLACE)
        .where("at is not null")
        .distinct()
        .join(F.broadcast(_with_first_record(starts, decoded)), list(EPOCH))
        .groupBy(*_PLACE)
        .agg(
            F.max("leader").alias("leader"),
            F.max_by(beginning, F.when(order <= F.col("at"), order)).alias("last"),
            F.min(F.array_min(since)).alias("restarted_since"),
        )
        .select(*_PLACE, "leader", "last.*", "restarted_since")
    )
    return removed.join(found, list(_PLACE), "left")


def _with_first_record(starts: DataFrame, decoded: Decoded) -> DataFrame:
    """Return beginnings, and leader epochs without any, with `first_at`: their first record."""
    commits = decoded["offset_commit"].select("partition", "leader_epoch", "timestamp")
    groups = decoded["group_metadata"].select("partition", "leader_epoch", "timestamp")
    since = ~F.col("is_restart") | (F.col("timestamp") >= F.col("started_at"))
    return (
        commits.unionByName(groups)
        .where("leader_epoch is not null")
        .withColumnRenamed("partition", "coordinator_partition")
        .join(F.broadcast(starts), list(EPOCH), "left")
        .where(F.coalesce(since, F.lit(col=True)))
        .groupBy(*EPOCH, "leader", "started_at", "is_restart", "idle_since")
        .agg(F.min("timestamp").alias("first_at"), F.first("broker_starts").alias("broker_starts"))
    )
