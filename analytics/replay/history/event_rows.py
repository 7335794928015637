"""What every event of a group has: when, what, to whom, and which record showed it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark.sql import functions as F

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

OFFSETS, SHARE_STATE, METADATA = (
    "__consumer_offsets",
    "__share_group_state",
    "__cluster_metadata",
)
PLACE = ("coordinator_partition", "record_offset", "leader_epoch", "copy", "segment")


def event_rows(
    frame: DataFrame, log: str, *, at: str, event: Column, subject: Column, detail: Column
) -> DataFrame:
    """Return events as rows of `group_events`.

    Args:
        frame: Has `group_id`, the columns of `PLACE` and `batch_position`.
        log: The internal topic that holds the records.
        at: The column of times.
        event: What happened; rows where it is null are none.
        subject: What it happened to; null for the group itself.
        detail: More about it, in words.
    """
    return frame.select(
        "group_id",
        F.col(at).alias("at"),
        event.alias("event"),
        subject.cast("string").alias("subject"),
        detail.cast("string").alias("detail"),
        F.lit(log).alias("log"),
        *PLACE,
        "batch_position",
    ).where("event is not null")


def words(*parts: Column | str) -> Column:
    """Join columns and texts; what is null is left out."""
    return F.concat_ws(
        "", *(F.lit(each) if isinstance(each, str) else each.cast("string") for each in parts)
    )


def partition_name(topic: str = "topic", partition: str = "partition") -> Column:
    """Return `topic-partition`."""
    return F.concat_ws("-", topic, F.col(partition).cast("string"))
