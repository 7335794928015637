"""Events of share partitions: initialised, altered, snapshots, records archived, deleted."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark.sql import Window
from pyspark.sql import functions as F

from analytics.replay.history.event_rows import SHARE_STATE, event_rows, partition_name, words
from analytics.replay.history.share_partition_epochs import KEY, SNAPSHOT, TOMBSTONE
from analytics.replay.history.topic_names import with_topic_names
from analytics.replay.log.as_of import Decoded
from analytics.replay.log.record_position import POSITION

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

ARCHIVED = 4


def share_events(epochs: DataFrame, decoded: Decoded, topics: DataFrame) -> DataFrame:
    """Return share_initialized, _offset_altered, _snapshot, _archived and _deleted.

    Args:
        epochs: The table `share_partition_epochs`.
        decoded: Decoded tables, cut at an instant.
        topics: The table `topics`, for names.
    """
    return _of_epochs(epochs).unionByName(_archived(decoded, topics))


def _of_epochs(epochs: DataFrame) -> DataFrame:
    order = Window.partitionBy(*KEY).orderBy("record_offset")
    told = F.when(F.col("kind") != "update", F.struct("kind", "state_epoch", "snapshot_epoch"))
    before = F.last(told, ignorenulls=True).over(order.rowsBetween(Window.unboundedPreceding, -1))
    begins = F.col("before").isNull() | (F.col("before.kind") == TOMBSTONE)
    renewed = F.col("state_epoch") > F.col("before.state_epoch")
    snapshot = F.col("kind") == SNAPSHOT
    event = (
        F.when(F.col("kind") == TOMBSTONE, "share_deleted")
        .when(snapshot & begins & (F.col("snapshot_epoch") == 0), "share_initialized")
        .when(snapshot & renewed, "share_offset_altered")
        .when(snapshot, "share_snapshot")
    )
    detail = F.concat_ws(
        "; ",
        F.concat(F.lit("start offset "), F.col("start_offset").cast("string")),
        F.concat(F.lit("state epoch "), F.col("state_epoch").cast("string")),
        F.concat(F.lit("snapshot "), F.col("snapshot_epoch").cast("string")),
        F.when(F.col("cold"), "idle"),
    )
    # Times are in the records, not in the table: a snapshot says when it was written.
    rows = epochs.withColumn("before", before).withColumn(
        "leader_epoch", F.col("coordinator_epoch")
    )
    return event_rows(
        rows, SHARE_STATE, at="at", event=event, subject=partition_name(), detail=detail
    )


def _archived(decoded: Decoded, topics: DataFrame) -> DataFrame:
    def of(name: str) -> DataFrame:
        archived = F.filter("value.state_batches", lambda each: each["delivery_state"] == ARCHIVED)
        return decoded[name].select(
            F.col("partition").alias("coordinator_partition"),
            F.col("key.group_id").alias("group_id"),
            F.col("key.topic_id").alias("topic_id"),
            F.lit(None).cast("string").alias("topic"),
            F.col("key.partition").alias("partition"),
            F.col("offset").alias("record_offset"),
            F.col("timestamp").alias("at"),
            *POSITION,
            archived.alias("archived"),
        )

    rows = with_topic_names(of("share_update").where(F.size("archived") > 0), topics)
    first = F.array_min(F.transform("archived", lambda each: each["first_offset"]))
    last = F.array_max(F.transform("archived", lambda each: each["last_offset"]))
    count = F.aggregate(
        "archived",
        F.lit(0).cast("bigint"),
        lambda total, each: total + each["last_offset"] - each["first_offset"] + 1,
    )
    return event_rows(
        rows,
        SHARE_STATE,
        at="at",
        event=F.lit("share_archived"),
        subject=partition_name(),
        detail=words(count, " records from ", first, " to ", last),
    )
