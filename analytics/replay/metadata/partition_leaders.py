"""Who leads every partition, from the metadata log (``PartitionRegistration.merge``).

A partition record is the whole registration; changes are merged into it. A leader epoch grows with
every change that names a leader, even the same one.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import polars as pl

from analytics.contracts import contract_frame
from analytics.replay.log.meanings import present
from analytics.replay.metadata.metadata_log import CERTAIN

if TYPE_CHECKING:
    from analytics.replay.metadata.metadata_log import MetadataLog

UNCHANGED_LEADER: Final = -2
UNCHANGED_RECOVERY: Final = -1
RECOVERING: Final = 1
"""LeaderRecoveryState: the leader was elected from outside the ISR."""

KEY: Final = ("topic_id", "partition")
STEP_TABLES: Final = (
    "topic_record",
    "remove_topic_record",
    "partition_record",
    "partition_change_record",
    "clear_elr_record",
)
"""What `partition_steps` reads."""
_NONE: Final = pl.lit([], pl.List(pl.Int32))


def partition_leaders(log: MetadataLog) -> pl.DataFrame:
    """Return the table `partition_leaders` as of the instant of a metadata log."""
    steps, is_named = partition_steps(log), pl.col("leader").is_not_null()
    base = steps.filter("is_base").group_by(KEY).agg(pl.col("at").max().alias("base_at"))
    merged = (
        steps.join(base, on=KEY)
        .filter(pl.col("at") >= pl.col("base_at"))
        .sort("at")
        .group_by(KEY)
        .agg(
            pl.col("leader", "recovery", "isr", "elr").drop_nulls().last(),
            pl.col("base_epoch").max(),
            (is_named & ~pl.col("is_base")).sum().alias("elections"),
            pl.col("since", "metadata_offset").filter(is_named).last(),
        )
    )
    rows = merged.join(_living_topics(log), on="topic_id").with_columns(
        present(pl.col("leader")).alias("leader"),
        (pl.col("base_epoch") + pl.col("elections")).alias("leader_epoch"),
        (pl.col("recovery") == RECOVERING).alias("unclean"),
    )
    return contract_frame(rows.with_columns(CERTAIN), "partition_leaders")


def partition_steps(log: MetadataLog) -> pl.DataFrame:
    """Return registrations, changes and clearings of partitions (``PartitionRegistration.merge``).

    Args:
        log: The metadata log at an instant.

    Returns:
        `topic_id`, `partition`; `at`, `since`, `metadata_offset` as of `MetadataLog.visible`;
        `is_base` (boolean: a whole registration) and its `base_epoch`; `leader` (-1: nobody),
        `recovery`, `isr`, `elr`, `replicas`: null where unchanged, and the last one in
        registrations.
    """
    value = pl.col("value").struct
    what = (
        value.field("topic_id"),
        value.field("partition_id").alias("partition"),
        *("at", "since", "metadata_offset"),
    )
    leader, recovery = value.field("leader"), value.field("leader_recovery_state")
    isr, elr = value.field("isr"), value.field("eligible_leader_replicas").alias("elr")
    whole = log.visible("partition_record").select(
        *what,
        pl.lit(value=True).alias("is_base"),
        leader,
        value.field("leader_epoch").alias("base_epoch"),
        recovery.alias("recovery"),
        isr,
        elr.fill_null(_NONE),
    )
    changes = log.visible("partition_change_record").select(
        *what,
        pl.lit(value=False).alias("is_base"),
        present(leader, UNCHANGED_LEADER).alias("leader"),
        present(recovery, UNCHANGED_RECOVERY).alias("recovery"),
        isr,
        elr,
        value.field("replicas"),
    )
    return pl.concat([changes, whole, _clearings(log, whole)], how="diagonal")


def _clearings(log: MetadataLog, registered: pl.DataFrame) -> pl.DataFrame:
    """Return ClearElr records for each partition they empty the list of; no name means all."""
    cleared = log.visible("clear_elr_record").select(
        pl.col("value").struct.field("topic_name").alias("topic"), "at"
    )
    named = registered.select(KEY).unique().join(_living_topics(log), on="topic_id")
    of_all = cleared.filter(pl.col("topic") == "").select("at")
    met = [named.join(cleared, on="topic"), named.join(of_all, how="cross")]
    return pl.concat(met).select(
        *KEY, "at", pl.lit(value=False).alias("is_base"), _NONE.alias("elr")
    )


def _living_topics(log: MetadataLog) -> pl.DataFrame:
    value = pl.col("value").struct
    named = log.visible("topic_record").select(
        value.field("topic_id"), value.field("name").alias("topic")
    )
    removed = log.visible("remove_topic_record").select(value.field("topic_id"))
    return named.join(removed, on="topic_id", how="anti")
