"""The table `share_partition_epochs`: every snapshot, update and deletion of share state, in order.

The numbers are those stored. What an update leaves unchanged (-1) is null, and what it is compared
with is the last that was told before it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark.sql import Window
from pyspark.sql import functions as F

from analytics.replay.contract import as_table
from analytics.replay.history.topic_names import with_topic_names
from analytics.replay.log.as_of import Decoded
from analytics.replay.log.stored_values import present

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

SNAPSHOT, UPDATE, TOMBSTONE = "snapshot", "update", "tombstone"
KEY = ("coordinator_partition", "group_id", "topic_id", "partition")


def share_partition_epochs(decoded: Decoded, topics: DataFrame) -> DataFrame:
    """Return the table `share_partition_epochs`.

    Args:
        decoded: Decoded tables, cut at an instant.
        topics: The table `topics` at that instant, for names.
    """
    is_tombstone = F.col("is_tombstone")
    value = F.col("value")
    written, created = value["write_timestamp"], value["create_timestamp"]
    timed = (written > 0) & (created > 0)
    snapshots = _records(
        decoded["share_snapshot"],
        F.when(is_tombstone, TOMBSTONE).otherwise(SNAPSHOT),
        state_epoch=value["state_epoch"],
        cold=F.when(timed, written != created),
    )
    updates = _records(
        decoded["share_update"].where(~is_tombstone),
        F.lit(UPDATE),
        state_epoch=F.lit(None).cast("int"),
        cold=F.lit(None).cast("boolean"),
    )
    order = Window.partitionBy(*KEY).orderBy("record_offset")
    before = order.rowsBetween(Window.unboundedPreceding, -1)
    # A tombstone ends what was before: nothing behind it is compared with that.
    life = F.sum((F.col("kind") == TOMBSTONE).cast("int")).over(before)
    so_far = F.struct("life", "start_offset", "snapshot_epoch")
    snapshot = F.when(F.col("kind") == SNAPSHOT, so_far)
    started = F.when(F.col("start_offset").isNotNull(), so_far)
    rows = (
        snapshots.unionByName(updates)
        .withColumn("life", F.coalesce(life, F.lit(0)))
        .withColumn("last_snapshot", F.last(snapshot, ignorenulls=True).over(before))
        .withColumn("last_start", F.last(started, ignorenulls=True).over(before))
        .withColumns({"start_offset_advance": _advance(), "epoch_mismatch": _mismatch()})
    )
    return as_table(
        with_topic_names(rows.withColumn("topic", F.lit(None).cast("string")), topics),
        "share_partition_epochs",
    )


def _records(records: DataFrame, kind: Column, *, state_epoch: Column, cold: Column) -> DataFrame:
    value = F.col("value")
    return records.select(
        F.col("partition").alias("coordinator_partition"),
        F.col("key.group_id").alias("group_id"),
        F.col("key.topic_id").alias("topic_id"),
        F.col("key.partition").alias("partition"),
        kind.alias("kind"),
        cold.alias("cold"),
        state_epoch.cast("int").alias("state_epoch"),
        value["snapshot_epoch"].cast("int").alias("snapshot_epoch"),
        present(value["leader_epoch"]).alias("leader_epoch"),
        present(value["start_offset"]).alias("start_offset"),
        present(value["delivery_complete_count"]).alias("delivery_complete_count"),
        F.size(value["state_batches"]).alias("ranges"),
        F.col("timestamp").alias("at"),
        F.col("offset").alias("record_offset"),
        F.col("leader_epoch").alias("coordinator_epoch"),
        "copy",
        "segment",
        "batch_position",
    ).withColumn("ranges", F.when(F.col("ranges") >= 0, F.col("ranges")))


def _advance() -> Column:
    moved = F.col("start_offset") - F.col("last_start.start_offset")
    same_life = F.col("last_start.life") == F.col("life")
    return F.when(same_life & (moved != 0), moved)


def _mismatch() -> Column:
    known = F.col("last_snapshot.life") == F.col("life")
    same = known & (F.col("last_snapshot.snapshot_epoch") == F.col("snapshot_epoch"))
    return F.when(F.col("kind") == UPDATE, ~F.coalesce(same, F.lit(col=False)))
