"""The table `share_batches`: the ranges of every state, one row each."""

from __future__ import annotations

import polars as pl

from analytics.contracts import contract_frame
from analytics.replay.log.marks import with_marks_of
from analytics.replay.log.meanings import word
from analytics.replay.share.share_partitions import KEY, topic_names
from analytics.replay.share.share_records import (
    ACKNOWLEDGED,
    ACQUIRED,
    ARCHIVED,
    ARCHIVING,
    AVAILABLE,
)

STATE_NAMES = {
    AVAILABLE: "AVAILABLE",
    ACQUIRED: "ACQUIRED",
    ACKNOWLEDGED: "ACKNOWLEDGED",
    ARCHIVING: "ARCHIVING",
    ARCHIVED: "ARCHIVED",
}
"""``RecordState``; ACQUIRED is never stored by a broker."""
UNKNOWN = "UNKNOWN"


def share_batches(
    states: pl.DataFrame, topics: pl.DataFrame, partitions: pl.DataFrame
) -> pl.DataFrame:
    """Return the table `share_batches`.

    Args:
        states: Of `share_states`.
        topics: The table `topics` at the instant, for names.
        partitions: The table `share_partitions`: what is lacking of one is lacking of its ranges.
    """
    held = states.filter(pl.col("batches").list.len() > 0)
    rows = held.select(*KEY, "batches").explode("batches").unnest("batches")
    named = rows.join(topic_names(topics), on="topic_id", how="left", maintain_order="left")
    state = word(pl.col("delivery_state"), STATE_NAMES, UNKNOWN)
    marked = with_marks_of(named.with_columns(delivery_state_name=state), partitions, KEY)
    return contract_frame(marked, "share_batches")
