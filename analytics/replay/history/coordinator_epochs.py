"""The table `coordinator_epochs`: who coordinated each internal partition, and from where to where.

The leader epoch of a batch is that of the broker that wrote it; who that was only the metadata log
tells.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Final

import polars as pl

from analytics.replay.groups.group_records import KINDS
from analytics.replay.log.record_position import IN_DUMP
from schemas import COORDINATOR_TOPICS

if TYPE_CHECKING:
    from analytics.replay.log.as_of import Decoded
    from analytics.replay.log.coverage import Coverage

KEY: Final = ("topic", "partition", "leader_epoch")
_LOG: Final = ("topic", "partition")
NOTED: Final = pl.Schema(
    {
        "topic": pl.String(),
        "partition": pl.Int32(),
        "leader_epoch": pl.Int32(),
        "noted_from": pl.Int64(),
    }
)
"""The leader epochs that logs and checkpoints note, and where each begins."""
TABLES: Final = (
    "offset_commit",
    "control_markers",
    "share_snapshot",
    "share_update",
    "transaction_log",
    *KINDS,
)
"""What has records of these."""


def epochs_seen(decoded: Decoded) -> pl.DataFrame:
    """Return what some records tell of leader epochs.

    Args:
        decoded: Of any records, one at least of `TABLES`.

    Returns:
        `KEY`, `from_offset`, `from_timestamp`, `last_offset`, `last_timestamp`, `records` and
        `place` (struct of `IN_DUMP`) of the first.
    """
    tables = [decoded[name] for name in TABLES if name in decoded]
    return merged_epochs(_epoch_runs(each) for each in _with_rows(tables))


def merged_epochs(frames: Iterable[pl.DataFrame]) -> pl.DataFrame:
    """Return as `epochs_seen` what several parts of the records tell together."""
    return (
        pl.concat(frames)
        .group_by(KEY)
        .agg(
            pl.col("from_offset").min(),
            pl.col("last_offset").max(),
            pl.col("from_timestamp", "place").get(pl.col("from_offset").arg_min()),
            pl.col("last_timestamp").get(pl.col("last_offset").arg_max()),
            pl.col("records").sum(),
        )
    )


def _with_rows(tables: Sequence[pl.DataFrame]) -> Sequence[pl.DataFrame]:
    """Return the tables that have rows; one without, where none has."""
    return [each for each in tables if each.height] or tables[:1]


def _epoch_runs(records: pl.DataFrame) -> pl.DataFrame:
    """Return what is told by each run of records of one epoch: there are few."""
    first, last = pl.col("offset").arg_min(), pl.col("offset").arg_max()
    return (
        records.select(*KEY, "offset", "timestamp", *IN_DUMP)
        .filter(pl.col("topic").is_in(COORDINATOR_TOPICS) & pl.col("leader_epoch").is_not_null())
        .group_by(pl.struct(KEY).rle_id().alias("run"))
        .agg(
            pl.col(KEY).first(),
            pl.col("offset").min().alias("from_offset"),
            pl.col("offset").max().alias("last_offset"),
            pl.col("timestamp").get(first).alias("from_timestamp"),
            pl.col("timestamp").get(last).alias("last_timestamp"),
            pl.len().cast(pl.Int64).alias("records"),
            pl.struct(pl.col(name).get(first) for name in IN_DUMP).alias("place"),
        )
        .drop("run")
    )


def noted_epochs(coverage: Coverage) -> pl.DataFrame:
    """Return as `NOTED` has them the epochs of partitions of coordinators."""
    rows = [
        (*log, epoch, first)
        for log, epochs in coverage.leader_epochs.items()
        if log[0] in COORDINATOR_TOPICS
        for epoch, first in epochs.items()
    ]
    return pl.DataFrame(rows, NOTED, orient="row")


def _with_noted(epochs: pl.DataFrame, noted: pl.DataFrame) -> pl.DataFrame:
    """Let epochs begin and end where that is noted, even where no record there is at hand.

    A filter or the cleaner may have left it out: then nothing tells its time. What is noted of
    another line of history does not fit the records, and is not taken.
    """
    first, last, noted_from = pl.col("from_offset"), pl.col("last_offset"), pl.col("noted_from")
    before = last.cum_max().shift(1).over(_LOG).fill_null(-1)
    after = first.reverse().cum_min().reverse().over(_LOG)
    fits = (noted_from > before) & (noted_from <= after).fill_null(value=True)
    told = (
        epochs.join(noted, on=KEY, how="full", coalesce=True)
        .sort(KEY)
        .with_columns(pl.when(fits).then(noted_from).alias("noted_from"))
        .filter(pl.coalesce(first, noted_from).is_not_null())
    )
    is_earlier = noted_from.is_not_null() & (first.is_null() | (noted_from < first))
    begun = told.with_columns(
        pl.when(is_earlier).then(noted_from).otherwise(first).alias("from_offset"),
        pl.when(~is_earlier).then("from_timestamp").alias("from_timestamp"),
        pl.when(~is_earlier).then("place").alias("place"),
        pl.col("records").fill_null(0),
    )
    end = noted_from.shift(-1).over(_LOG) - 1
    is_later = end.is_not_null() & (last.is_null() | (end > last))
    ended = begun.with_columns(
        pl.when(is_later).then(end).otherwise(last).alias("last_offset"),
        pl.when(~is_later).then("last_timestamp").alias("last_timestamp"),
    )
    # A leader that wrote nothing may be noted, too.
    wrote = last.is_null() | (last >= first)
    return ended.filter(wrote).drop("noted_from")


def coordinator_epochs(
    epochs: pl.DataFrame, elected: pl.DataFrame, noted: pl.DataFrame | None = None
) -> pl.DataFrame:
    """Return the columns of the table `coordinator_epochs`, and where each epoch's first record is.

    Args:
        epochs: Of `epochs_seen`, of all records.
        elected: Of `elections`, up to the same instant.
        noted: Of `noted_epochs`, where anything is noted.

    Returns:
        The table's columns, `place` (struct of `IN_DUMP`) and `led_before`: the last broker that
        led before, whether it wrote anything or not; null where nothing tells.
    """
    leaders = elected.select(*KEY, "leader", "unclean", pl.col("since").alias("elected_at"))
    over = pl.col("leader_epoch").shift(-1).over("topic", "partition").is_not_null()
    told = epochs if noted is None else _with_noted(epochs, noted)
    return (
        told.sort(KEY)
        .with_columns(
            pl.when(over).then("last_offset").alias("to_offset"),
            pl.when(over).then("last_timestamp").alias("to_timestamp"),
        )
        .join(leaders, on=KEY, how="left", maintain_order="left")
        .sort("leader_epoch")
        .join_asof(
            _leaders_before(elected),
            left_on="leader_epoch",
            right_on="until_epoch",
            by=["topic", "partition"],
            check_sortedness=False,
        )
        .drop("until_epoch", strict=False)
        .sort(KEY)
    )


def _leaders_before(elected: pl.DataFrame) -> pl.DataFrame:
    """Return the brokers that led, each with the leader epoch from which on it led before."""
    return (
        elected.filter(pl.col("leader") >= 0)
        .select(
            *("topic", "partition"),
            (pl.col("leader_epoch") + 1).alias("until_epoch"),
            pl.col("leader").alias("led_before"),
        )
        .sort("until_epoch")
    )
