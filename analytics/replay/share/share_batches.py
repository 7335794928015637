"""The table `share_batches`: the ranges of every state, one row each."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark.sql import functions as F

from analytics.replay.contract import as_table
from analytics.replay.log.stored_values import word
from analytics.replay.share.share_partitions import topic_names
from analytics.replay.share.share_records import (
    ACKNOWLEDGED,
    ACQUIRED,
    ARCHIVED,
    ARCHIVING,
    AVAILABLE,
)

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

STATE_NAMES = {
    AVAILABLE: "AVAILABLE",
    ACQUIRED: "ACQUIRED",
    ACKNOWLEDGED: "ACKNOWLEDGED",
    ARCHIVING: "ARCHIVING",
    ARCHIVED: "ARCHIVED",
}
"""``RecordState``; ACQUIRED is never stored by a broker."""
UNKNOWN = "UNKNOWN"


def share_batches(states: DataFrame, topics: DataFrame) -> DataFrame:
    """Return the table `share_batches`.

    Args:
        states: Of `share_states`.
        topics: The table `topics` at the instant, for names.
    """
    rows = states.select("group_id", "topic_id", "partition", F.inline("batches"))
    named = rows.join(topic_names(topics), "topic_id", "left").withColumn(
        "delivery_state_name", word(F.col("delivery_state"), STATE_NAMES, UNKNOWN)
    )
    return as_table(named, "share_batches")
