"""Why a group was deleted: what took its last offsets in the same act took the group, too.

DeleteGroups, the cleanup and the deletion of a topic write the group's own tombstone with those of
its offsets (``OffsetMetadataManager``, ``GroupMetadataManager.maybeDeleteGroup``), at one time. A
group whose tombstone is alone had no offset to say why: who deleted it is not known.
"""

from __future__ import annotations

from typing import Final

import polars as pl

from analytics.replay.groups.group_records import GROUP_KEY
from analytics.replay.history.events.event_frames import words
from analytics.replay.offsets.offset_causes import UNKNOWN
from analytics.replay.offsets.offset_changes import DELETE

DELETED: Final = "deleted"
_ACT: Final = (*GROUP_KEY, "at")


def with_causes_of_endings(events: pl.DataFrame, history: pl.DataFrame) -> pl.DataFrame:
    """Say in the detail of `deleted` by what, as of the offsets that went in the same act.

    Args:
        events: Of groups, rows of `group_events`.
        history: The table `offset_history` of the same groups.

    Returns:
        The same rows. Where no offset went at that time, or two of them for two reasons, the cause
        is unknown.
    """
    said = words(
        pl.col("cause").str.replace_all("_", " ", literal=True),
        " (",
        pl.col("confidence"),
        " confidence)",
    )
    is_known = pl.col("cause").is_not_null() & (pl.col("cause") != UNKNOWN)
    of_acts = (
        history.filter((pl.col("event") == DELETE) & pl.col("effective_timestamp").is_not_null())
        .select(
            *GROUP_KEY,
            pl.col("effective_timestamp").alias("at"),
            pl.when(is_known).then(said).otherwise(pl.lit(UNKNOWN)).alias("why"),
        )
        .group_by(_ACT)
        .agg(
            pl.when(pl.col("why").n_unique() == 1)
            .then(pl.col("why").first())
            .otherwise(pl.lit(UNKNOWN))
            .alias("why")
        )
    )
    ends = pl.col("event") == DELETED
    detail = words(pl.col("detail"), "; cause: ", pl.col("why").fill_null(UNKNOWN))
    return (
        events.join(of_acts, on=list(_ACT), how="left", maintain_order="left")
        .with_columns(pl.when(ends).then(detail).otherwise("detail").alias("detail"))
        .drop("why")
    )
