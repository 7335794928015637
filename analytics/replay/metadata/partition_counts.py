"""How many partitions an internal topic had in which era, from the metadata log.

Partitions that are added later have records of their own. Coordinators go by the number that their
broker knew when it was started, so the era of a new number begins when every broker has registered
anew after it.
"""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING

import polars as pl

from analytics.replay.log.topic_homes import NOT_SEEN, Era
from analytics.replay.metadata.coordinator_starts import broker_starts

if TYPE_CHECKING:
    from analytics.replay.metadata.metadata_log import MetadataLog


def partition_eras(log: MetadataLog, topic: str) -> tuple[Era, ...]:
    """Return the eras of a topic; none where the log does not name it.

    Args:
        log: The metadata log, up to its end.
        topic: The internal topic.
    """
    counts = _counts(log, topic)
    if counts.is_empty():
        return ()
    starts = broker_starts(log)
    eras: list[Era] = []
    for at, since, number in counts.iter_rows():
        first: datetime | None = None
        if eras:
            eras[-1] = Era(eras[-1].partitions, eras[-1].first, since)
            first = _all_started_after(log, starts, at)
        eras.append(Era(number, first))
    return tuple(eras)


def _counts(log: MetadataLog, topic: str) -> pl.DataFrame:
    """Return `at`, `since` and the number of partitions: when the topic was made, and altered."""
    value = pl.col("value").struct
    named = log.visible("topic_record").select(value.field("name"), value.field("topic_id"), "at")
    ids = named.filter(pl.col("name") == topic).sort("at")["topic_id"]
    if ids.is_empty():
        return pl.DataFrame(schema={"at": pl.Int64, "since": pl.Datetime, "number": pl.Int64})
    made = (
        log.visible("partition_record")
        .select(value.field("topic_id"), value.field("partition_id"), "at", "since")
        .filter(pl.col("topic_id") == ids[-1])
        .sort("at")
        .unique("partition_id", keep="first", maintain_order=True)
    )
    # What is made at once has records one behind the other, and a snapshot tells all at once.
    is_later = (pl.col("at") - pl.col("at").shift(1)).fill_null(0) > 1
    return (
        made.with_row_index("nth")
        .group_by(is_later.cum_sum().alias("act"), maintain_order=True)
        .agg(pl.col("at").max(), pl.col("since").min(), (pl.col("nth").max() + 1).alias("number"))
        .select("at", "since", "number")
    )


def _all_started_after(log: MetadataLog, starts: pl.DataFrame, at: int) -> datetime:
    """Return when the last broker was started after a record; `NOT_SEEN` while one was not."""
    value = pl.col("value").struct
    brokers = log.visible("register_broker_record").select(value.field("broker_id").alias("leader"))
    gone = log.visible("unregister_broker_record").select(value.field("broker_id").alias("leader"))
    first = (
        brokers.unique()
        .join(gone, on="leader", how="anti")
        .join(
            starts.filter(pl.col("at") > at).group_by("leader").agg(pl.col("since").min()),
            on="leader",
            how="left",
        )["since"]
    )
    found = None if first.null_count() or first.is_empty() else first.max()
    return found if isinstance(found, datetime) else NOT_SEEN
