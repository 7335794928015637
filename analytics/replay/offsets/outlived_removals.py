"""Commits in transactions that outlive the removal of their offset, and whom that depends on.

Before 4.0 a tombstone outside transactions leaves what is pending in the log: the coordinator that
wrote it has dropped that from memory (``GroupMetadata.removeOffsets``), and one that loads the log
later has it again (``GroupMetadataManager.loadGroupsAndOffsets``).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark.sql import functions as F

from analytics.replay.log.coverage import Coverage
from analytics.replay.log.rules import ReplayRules

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from analytics.replay.log.as_of import Decoded

_KEY = ("coordinator_partition", "group_id", "topic", "partition")
_WHY = (
    "a coordinator that has run since offset %d dropped it there with a tombstone; one that loads "
    "the log has it"
)


def with_outlived_removal(
    rows: DataFrame, decoded: Decoded, rules: ReplayRules, coverage: Coverage
) -> DataFrame:
    """Add `outlived`: why it depends on the coordinator whether there is such a commit, else null.

    A later leader epoch shows that the log was loaded since.

    Args:
        rows: Commits with their key, `record_offset` and `via`.
        decoded: The decoded tables, cut at an instant.
        rules: Of the release.
        coverage: Whose answer is asked for.
    """
    if rules.tombstones_remove_everything or not coverage.is_of_running:
        return rows.withColumn("outlived", F.lit(None).cast("string"))
    removed = _last_removals(decoded).join(
        rows.where(F.col("via") == "transaction").select(*_KEY).distinct(), list(_KEY), "left_semi"
    )
    told = rows.join(F.broadcast(removed), list(_KEY), "left").join(
        F.broadcast(_last_epochs(decoded)), "coordinator_partition", "left"
    )
    is_open = (
        (F.col("via") == "transaction")
        & (F.col("removed_at") > F.col("record_offset"))
        & ~F.coalesce(F.col("last_epoch") > F.col("removal_epoch"), F.lit(col=False))
    )
    why = F.format_string(_WHY, F.col("removed_at"))
    return told.withColumn("outlived", F.when(is_open, why)).drop(
        "removed_at", "removal_epoch", "last_epoch"
    )


def _last_removals(decoded: Decoded) -> DataFrame:
    plain = ~F.col("is_transactional").eqNullSafe(F.lit(col=True))
    return (
        decoded["offset_commit"]
        .where(F.col("is_tombstone") & plain)
        .groupBy(
            F.col("partition").alias("coordinator_partition"),
            F.col("key.group").alias("group_id"),
            F.col("key.topic").alias("topic"),
            F.col("key.partition").alias("partition"),
        )
        .agg(
            F.max("offset").alias("removed_at"),
            F.max_by("leader_epoch", "offset").alias("removal_epoch"),
        )
    )


def _last_epochs(decoded: Decoded) -> DataFrame:
    epochs = [
        decoded[name].select(F.col("partition").alias("coordinator_partition"), "leader_epoch")
        for name in ("offset_commit", "group_metadata")
    ]
    return (
        epochs[0]
        .unionByName(epochs[1])
        .groupBy("coordinator_partition")
        .agg(F.max("leader_epoch").alias("last_epoch"))
    )
