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

KEY: Final = ("topic", "partition", "leader_epoch")
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
    return merged_epochs(_seen(each) for each in _with_rows(tables))


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


def _seen(records: pl.DataFrame) -> pl.DataFrame:
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


def coordinator_epochs(found: pl.DataFrame, elected: pl.DataFrame) -> pl.DataFrame:
    """Return the columns of the table `coordinator_epochs`, and where each epoch's first record is.

    Args:
        found: Of `epochs_seen`, of all records.
        elected: Of `elections`, up to the same instant.

    Returns:
        The table's columns, `place` (struct of `IN_DUMP`) and `led_before`: the last broker that
        led before, whether it wrote anything or not; null where nothing tells.
    """
    leaders = elected.select(*KEY, "leader", "unclean", pl.col("since").alias("elected_at"))
    over = pl.col("leader_epoch").shift(-1).over("topic", "partition").is_not_null()
    return (
        found.sort(KEY)
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
