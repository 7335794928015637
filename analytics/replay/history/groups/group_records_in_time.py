"""What the history of groups is made of: their records, first commits and topologies."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import polars as pl

from analytics.replay.groups.group_records import CLASSIC, GROUP_KEY

if TYPE_CHECKING:
    from analytics.replay.log.as_of import Decoded

_OF_STATE: Final = ("kind", "batch_offset", "previous_epoch", "state_ms", "members")
"""Columns of the coordinator's log that history makes nothing of."""


def group_records_in_time(log: pl.DataFrame, decoded: Decoded) -> dict[str, pl.DataFrame]:
    """Return `log`, `commits` and `topologies`, as `group_history` takes them.

    Args:
        log: Of `coordinator_log`.
        decoded: The decoded tables that it is of.
    """
    home = pl.col("partition").alias(GROUP_KEY[0])
    modern = log.filter(pl.col("family") != CLASSIC).select(GROUP_KEY).unique()
    key, value = pl.col("key").struct, pl.col("value").struct
    commits = (
        decoded["offset_commit"]
        .filter(~pl.col("is_tombstone"))
        .select(home, key.field("group").alias("group_id"), "offset")
        .join(modern, on=list(GROUP_KEY), how="semi")
    )
    topologies = decoded["streams_group_topology"].select(
        home, key.field("group_id"), value.field("subtopologies")
    )
    return {"log": log.drop(_OF_STATE), "commits": commits, "topologies": topologies}
