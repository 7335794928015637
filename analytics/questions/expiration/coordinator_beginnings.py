"""Since when the coordinator had been at work that removed an offset, and whether it still is.

A coordinator begins its cleanups anew whenever it loads its partition, and a broker reads its
settings only when it starts: the two things that explain a removal at another time than expected.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import polars as pl

from analytics.replay.metadata.coordinator_starts import STARTS
from analytics.replay.spans.intervals import TIME

if TYPE_CHECKING:
    from analytics.questions.expiration.offset_log import GroupRecords

EPOCH: Final = ("coordinator_partition", "leader_epoch")
_BEGINNING: Final = (*EPOCH, "is_restart", "started_at")
_PLACE: Final = (*EPOCH, "at")


def first_times(records: GroupRecords, starts: pl.DataFrame) -> pl.DataFrame:
    """Return the first records of some groups since each beginning of a coordinator.

    Args:
        records: Up to the instant.
        starts: `STARTS`; no rows where there is no metadata log.

    Returns:
        `_BEGINNING`, null but for `EPOCH` where the metadata log has none of a leader epoch, and
        `first_at` (timestamp).
    """
    groups = records.decoded["group_metadata"].select(
        pl.col("partition").alias(EPOCH[0]), EPOCH[1], pl.col("timestamp").cast(TIME).alias("at")
    )
    told = records.commits.select(*EPOCH, pl.col("committed_at").alias("at"))
    times = pl.concat([told, groups])
    first = times.group_by(EPOCH).agg(pl.col("at").min().alias("first_at")).drop_nulls(EPOCH)
    begun = first.join(starts.select(_BEGINNING), on=EPOCH, how="left")
    is_again = pl.col("is_restart").fill_null(value=False)
    again = begun.filter(is_again).drop("first_at")
    since = times.join(again, on=EPOCH).filter(pl.col("at") >= pl.col("started_at"))
    restarted = since.group_by(_BEGINNING).agg(pl.col("at").min().alias("first_at"))
    return pl.concat([begun.filter(~is_again).select(restarted.columns), restarted])


def first_records(times: pl.DataFrame, removed: pl.DataFrame, starts: pl.DataFrame) -> pl.DataFrame:
    """Return beginnings of coordinators that removed offsets, with their first record since.

    Args:
        times: Of `first_times`, of all groups of these partitions.
        removed: Of `removed_offsets`, from these partitions.
        starts: `STARTS`.

    Returns:
        `STARTS`, null but for `EPOCH` where the metadata log has none of a leader epoch, and
        `first_at`: the time of the first record of the epoch since that beginning.
    """
    return (
        times.join(removed.select(EPOCH).unique(), on=EPOCH, how="semi")
        .group_by(_BEGINNING)
        .agg(pl.col("first_at").min())
        .join(starts, on=_BEGINNING, how="left", nulls_equal=True)
        .select(*STARTS.names(), "first_at")
    )


def with_beginning(removed: pl.DataFrame, begun: pl.DataFrame) -> pl.DataFrame:
    """Add when the coordinator began that wrote a tombstone.

    Args:
        removed: Has `coordinator_partition`, `leader_epoch` and `at`.
        begun: Of `first_records`.

    Returns:
        The rows with `leader` (int: the broker; null where no metadata log tells), `began_at`
        (timestamp: when it was elected or started last before the tombstone; where no metadata log
        tells, the first record of the leader epoch), `ready_by` (timestamp: its first record since,
        by which it had loaded its partition), `by_restart` (boolean: it started again within the
        leader epoch), `idle_since` (timestamp: until when the leader before had been at work; null
        where that is not known) and `restarted_since` (timestamp: when the broker started again
        after the tombstone; null where it did not).
    """
    # An election before the metadata log begins was at no time that is known.
    unknown = pl.when(pl.col("leader").is_null()).then("first_at")
    known = begun.with_columns(
        pl.coalesce("started_at", unknown).alias("began_at"),
        pl.coalesce("started_at", "first_at").alias("order"),
    )
    there = removed.select(_PLACE).filter(pl.col("at").is_not_null()).unique()
    beginnings = there.join(known, on=EPOCH)
    last = (
        beginnings.filter(pl.col("order") <= pl.col("at"))
        .sort("order")
        .unique(_PLACE, keep="last", maintain_order=True)
        .select(
            *_PLACE,
            "began_at",
            pl.col("first_at").alias("ready_by"),
            pl.col("is_restart").alias("by_restart"),
            "idle_since",
        )
    )
    leaders = beginnings.group_by(_PLACE).agg(pl.col("leader").max())
    again = (
        beginnings.select(*_PLACE, "broker_starts")
        .explode("broker_starts")
        .filter(pl.col("broker_starts") > pl.col("at"))
        .group_by(_PLACE)
        .agg(pl.col("broker_starts").min().alias("restarted_since"))
    )
    for each in (leaders, last, again):
        removed = removed.join(each, on=_PLACE, how="left")
    return removed
