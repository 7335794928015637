"""The records of share state gathered from decoded tables, and what their history tells."""

from __future__ import annotations

from typing import TYPE_CHECKING

import polars as pl
from pyspark.sql import functions as F

from analytics.replay.contract_frame import contract_schema
from analytics.replay.history.share_events import share_events
from analytics.replay.history.share_partition_epochs import share_partition_epochs
from analytics.replay.log.as_of import Decoded
from analytics.replay.log.group_buckets import Frames, group_rows
from analytics.replay.log.record_position import IN_DUMP, POSITION

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

ARCHIVED = 4
_SCHEMAS = {
    "share_partition_epochs": contract_schema("share_partition_epochs"),
    "events": contract_schema("group_events"),
}


def made_of_share_state(decoded: Decoded, names: pl.DataFrame) -> dict[str, DataFrame]:
    """Return the table `share_partition_epochs`, and `events` of share partitions.

    Args:
        decoded: Decoded tables, cut at an instant.
        names: Of topics: `topic_id` and `name`, each id once.
    """
    snapshots, updates = decoded["share_snapshot"], decoded["share_update"]
    archived = F.filter("value.state_batches", lambda each: each["delivery_state"] == ARCHIVED)
    archives = updates.select(*_place(), *POSITION, archived.alias("archived"))
    frames = {
        "records": _records(snapshots, is_update=False).unionByName(
            _records(updates, is_update=True)
        ),
        "archives": archives.where(F.size("archived") > 0),
    }

    def make(rows: Frames) -> Frames:
        epochs = share_partition_epochs(rows["records"], names)
        events = share_events(epochs, rows["archives"], names)
        return {"share_partition_epochs": epochs, "events": events}

    return group_rows(frames).made(make, _SCHEMAS)


def _records(records: DataFrame, *, is_update: bool) -> DataFrame:
    value = F.col("value")
    of_snapshot = {"write_timestamp": "bigint", "create_timestamp": "bigint", "state_epoch": "int"}
    size = F.size(value["state_batches"])
    return records.select(
        *_place(),
        F.lit(is_update).alias("is_update"),
        "is_tombstone",
        *(
            (F.lit(None) if is_update else value[name]).cast(kind).alias(name)
            for name, kind in of_snapshot.items()
        ),
        *(
            value[name].alias(name)
            for name in (
                "snapshot_epoch",
                "leader_epoch",
                "start_offset",
                "delivery_complete_count",
            )
        ),
        F.when(size >= 0, size).alias("ranges"),
        F.col("leader_epoch").alias("coordinator_epoch"),
        *IN_DUMP,
    )


def _place() -> tuple[Column, ...]:
    return (
        F.col("partition").alias("coordinator_partition"),
        F.col("key.group_id").alias("group_id"),
        F.col("key.topic_id").alias("topic_id"),
        F.col("key.partition").alias("partition"),
        F.col("offset").alias("record_offset"),
        F.col("timestamp").alias("at"),
    )
