"""When coordinators began: elected for their partition, or started again while they led it.

A broker that is killed and back before another one is elected goes on with its leader epoch: only
that it registers with another incarnation tells (``ClusterControlManager.registerBroker``). What it
kept in memory is gone all the same, and its cleanups begin anew.

Takes the metadata log at an instant; gives `STARTS`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import polars as pl

from analytics.replay.history.data_partitions import elections
from analytics.replay.metadata.partition_leaders import KEY, STEP_TABLES
from analytics.replay.spans.intervals import TIME
from schemas import CONSUMER_OFFSETS

if TYPE_CHECKING:
    from analytics.replay.metadata.metadata_log import MetadataLog

STARTS: Final = pl.Schema(
    {
        "coordinator_partition": pl.Int32(),
        "leader_epoch": pl.Int32(),
        "leader": pl.Int32(),
        "started_at": TIME,
        "is_restart": pl.Boolean(),
        "idle_since": TIME,
        "broker_starts": pl.List(TIME),
    }
)
"""A row per beginning: `started_at` (null where it was before the first record), `is_restart` (the
broker started again within the epoch), `idle_since` (until when the leader before had led; null
where that is not known) and `broker_starts` (when that broker started, at any time)."""

TABLES: Final = (*STEP_TABLES, "register_broker_record")
"""Tables of the metadata log that are looked at with their values."""


def coordinator_starts(log: MetadataLog, topics: pl.DataFrame) -> pl.DataFrame:
    """Return `STARTS`: every beginning of a coordinator of offsets that the metadata log tells.

    Args:
        log: The metadata log at an instant, with `TABLES`.
        topics: The state table `topics`.
    """
    led = _reigns(elections(log, topics).filter(pl.col("topic") == CONSUMER_OFFSETS))
    brokers = broker_starts(log)
    listed = brokers.sort("at", "since").group_by("leader", maintain_order=True)
    told = led.join(
        listed.agg(pl.col("since").alias("broker_starts")),
        on="leader",
        how="left",
        maintain_order="left",
    )
    within = pl.col("until").is_null() | (pl.col("start_at") < pl.col("until"))
    # When a broker was killed no record says.
    restarts = (
        told.join(brokers.rename({"at": "start_at", "since": "started_at"}), on="leader")
        .filter((pl.col("start_at") > pl.col("at")) & within)
        .with_columns(
            pl.lit(value=True).alias("is_restart"), pl.lit(None, TIME).alias("idle_since")
        )
    )
    elected = told.with_columns(
        pl.col("since").alias("started_at"), pl.lit(value=False).alias("is_restart")
    )
    return pl.concat(
        each.select(pl.col(name).cast(kind) for name, kind in STARTS.items())
        for each in (elected, restarts)
    )


def _reigns(elected: pl.DataFrame) -> pl.DataFrame:
    """Add to elections of somebody `until` (bigint: when the next one was) and `idle_since`."""

    def before(name: str) -> pl.Expr:
        return pl.col(name).shift(1).over(KEY)

    nobody_since = pl.when(before("leader").is_null()).then(before("since"))
    return elected.with_columns(
        pl.col("partition").alias("coordinator_partition"),
        pl.col("at").shift(-1).over(KEY).alias("until"),
        pl.when(before("at").is_not_null())
        .then(pl.coalesce(nobody_since, "since"))
        .alias("idle_since"),
    ).filter(pl.col("leader").is_not_null())


def broker_starts(log: MetadataLog) -> pl.DataFrame:
    """Return `leader`, `at` and `since` where brokers registered with another incarnation.

    What a snapshot holds tells an incarnation, not when it began.
    """
    value = pl.col("value").struct
    said = (
        log.visible("register_broker_record")
        .select(
            value.field("broker_id").alias("leader"),
            value.field("incarnation_id").alias("incarnation"),
            *("at", "since"),
        )
        .sort("at")
    )
    is_new = pl.col("incarnation").ne_missing(pl.col("incarnation").shift(1).over("leader"))
    return said.filter(is_new & pl.col("since").is_not_null()).drop("incarnation")
