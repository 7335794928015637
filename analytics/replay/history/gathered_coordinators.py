"""What leader epochs of internal partitions left in a dump: few rows, which are brought here."""

from __future__ import annotations

from typing import TYPE_CHECKING

import polars as pl
from pyspark.sql import functions as F

from analytics.replay.contract_frame import contract_frame
from analytics.replay.history.coordinator_epochs import KEY, coordinator_epochs
from analytics.replay.log.as_of import Decoded
from analytics.replay.log.group_buckets import from_spark, on_spark
from analytics.replay.log.record_position import IN_DUMP
from analytics.replay.union import union_all

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

INTERNAL = ("__consumer_offsets", "__share_group_state", "__transaction_state")
_TABLES = ("offset_commit", "control_markers", "share_snapshot", "share_update", "transaction_log")


def coordinators(decoded: Decoded, log: DataFrame, elected: DataFrame) -> pl.DataFrame:
    """Return what `coordinator_epochs` does of polars.

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
        *(f"position.{name}" for name in IN_DUMP),
    )
    others = (decoded[name].select(*KEY, "offset", "timestamp", *IN_DUMP) for name in _TABLES)
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
            F.min_by(F.struct(*IN_DUMP), "offset").alias("place"),
        )
    )
    told = elected.where(F.col("topic").isin(*INTERNAL)).select(*KEY, "leader", "unclean", "since")
    return coordinator_epochs(from_spark(found), from_spark(told))


def coordinator_table(found: pl.DataFrame, log: DataFrame) -> DataFrame:
    """Return the table `coordinator_epochs`; of the log only its session is used."""
    return on_spark(log.sparkSession, contract_frame(found, "coordinator_epochs"))
