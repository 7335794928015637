"""When coordinators began: elected for their partition, or started again while they led it.

A broker that is killed and back before another one is elected goes on with its leader epoch: only
that it registers with another incarnation tells (``ClusterControlManager.registerBroker``). What it
kept in memory is gone all the same, and its cleanups begin anew.

Takes decoded tables by name as frames of polars, cut at an instant; gives `STARTS`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Final

import polars as pl

from analytics.dump.files.model import CONSUMER_OFFSETS
from analytics.replay.metadata.visible_records import visible
from analytics.replay.spans.intervals import TIME

if TYPE_CHECKING:
    from analytics.replay.metadata.visible_records import Beginning

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

TABLES: Final = ("partition_record", "partition_change_record", "register_broker_record")
NOBODY, UNCHANGED_LEADER = -1, -2
_PLACE: Final = ["topic_id", "partition"]


def coordinator_starts(
    decoded: Mapping[str, pl.DataFrame], begins: Beginning, topics: pl.DataFrame
) -> pl.DataFrame:
    """Return `STARTS`: every beginning of a coordinator of offsets that the metadata log tells.

    Args:
        decoded: Has `TABLES`, and what `visible` takes.
        begins: How the metadata log begins.
        topics: The state table `topics`.
    """
    led = _reigns(_elections(decoded, begins, topics))
    brokers = _broker_starts(decoded, begins)
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


def _elections(
    decoded: Mapping[str, pl.DataFrame], begins: Beginning, topics: pl.DataFrame
) -> pl.DataFrame:
    """Return every election of a leader of the offsets topic (``PartitionRegistration.merge``).

    Returns:
        `topic_id`, `partition`, `leader_epoch`, `leader` (null: nobody), `since`, `at`, in the
        order of the last.
    """
    ids = topics.filter((pl.col("topic") == CONSUMER_OFFSETS) & pl.col("topic_id").is_not_null())
    value = pl.col("value").struct
    steps = pl.concat(
        [
            visible(decoded, name, begins).select(
                value.field("topic_id").alias("topic_id"),
                value.field("partition_id").alias("partition"),
                *("at", "since"),
                value.field("leader").alias("leader"),
                (value.field("leader_epoch") if is_base else pl.lit(None, pl.Int32)).alias("base"),
                pl.lit(value=is_base).alias("is_base"),
            )
            for name, is_base in (("partition_record", True), ("partition_change_record", False))
        ]
    )
    named = steps.filter(pl.col("leader").is_not_null() & (pl.col("leader") != UNCHANGED_LEADER))
    named = named.join(ids.select("topic_id").unique(), on="topic_id", how="semi").sort("at")
    nth = (~pl.col("is_base")).cum_sum().over(_PLACE)
    return named.with_columns(
        (pl.col("base").forward_fill().over(_PLACE) + nth).alias("leader_epoch"),
        pl.when(pl.col("leader") != NOBODY).then("leader").alias("leader"),
    )


def _reigns(elected: pl.DataFrame) -> pl.DataFrame:
    """Add to elections of somebody `until` (bigint: when the next one was) and `idle_since`."""

    def before(name: str) -> pl.Expr:
        return pl.col(name).shift(1).over(_PLACE)

    nobody_since = pl.when(before("leader").is_null()).then(before("since"))
    return elected.with_columns(
        pl.col("partition").alias("coordinator_partition"),
        pl.col("at").shift(-1).over(_PLACE).alias("until"),
        pl.when(before("at").is_not_null())
        .then(pl.coalesce(nobody_since, "since"))
        .alias("idle_since"),
    ).filter(pl.col("leader").is_not_null())


def _broker_starts(decoded: Mapping[str, pl.DataFrame], begins: Beginning) -> pl.DataFrame:
    """Return `leader`, `at` and `since` where brokers registered with another incarnation.

    What a snapshot holds tells an incarnation, not when it began.
    """
    value = pl.col("value").struct
    said = (
        visible(decoded, "register_broker_record", begins)
        .select(
            value.field("broker_id").alias("leader"),
            value.field("incarnation_id").alias("incarnation"),
            *("at", "since"),
        )
        .sort("at")
    )
    is_new = pl.col("incarnation").ne_missing(pl.col("incarnation").shift(1).over("leader"))
    return said.filter(is_new & pl.col("since").is_not_null()).drop("incarnation")
