"""The table `share_prunable`: what brokers may delete of `__share_group_state`, and what keeps it.

Below the least of the last snapshots of all share partitions nothing is needed any more: the share
coordinator deletes it every few minutes (``ShareCoordinatorOffsetsManager``). One share partition
without a new snapshot keeps the records of all others of its internal partition.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import TYPE_CHECKING, Final

import polars as pl

from analytics.contracts import contract_frame
from analytics.questions.share.share_log import HOME, KEY
from analytics.replay.log.arrow_rows import polars_rows
from analytics.replay.log.marks import with_marks_of

if TYPE_CHECKING:
    import pyarrow as pa

SNAPSHOT_COLUMNS: Final = ("partition", "offset", "timestamp", "is_tombstone", "key")
"""What is needed of ``share_snapshot``."""
UPDATE_COLUMNS: Final = ("partition", "offset")
"""What is needed of ``share_update``."""


@dataclass(frozen=True)
class StateRecords:
    """The records of `__share_group_state` that count at the instant.

    Attributes:
        snapshots: `SNAPSHOT_COLUMNS`.
        updates: `UPDATE_COLUMNS`.
        log_starts: By internal partition, where it begins; absent where that is not known.
    """

    snapshots: pa.Table
    updates: pa.Table
    log_starts: Mapping[int, int]


_SNAPSHOT: Final = pl.Schema(
    {
        HOME: pl.Int32(),
        "offset": pl.Int64(),
        "timestamp": pl.Datetime("us", "UTC"),
        "is_tombstone": pl.Boolean(),
        "group_id": pl.String(),
        "topic_id": pl.String(),
        "partition": pl.Int32(),
    }
)


def prunable(
    records: StateRecords, topics: pl.DataFrame, gaps: Mapping[int, str] = MappingProxyType({})
) -> pl.DataFrame:
    """Return a row for each internal partition with a snapshot: the table `share_prunable`.

    Args:
        records: Of all groups.
        topics: The table `topics`: `topic_id`, `topic`.
        gaps: By internal partition, what the dump lacks of it, in words.
    """
    snapshots = _snapshots(records.snapshots)
    offsets = _offsets(snapshots, records.updates)
    starts, lacking = (
        pl.DataFrame({HOME: list(known), name: list(known.values())}, {HOME: pl.Int32, name: kind})
        for known, name, kind in (
            (records.log_starts, "log_start_offset", pl.Int64),
            (gaps, "missing", pl.String),
        )
    )
    # Where no share partition lives nothing below the last tombstone is needed.
    until = pl.coalesce("held_by_offset", "last_snapshot")
    start = pl.col("log_start_offset")
    homes = (
        snapshots.group_by(HOME)
        .agg(last_snapshot=pl.col("offset").max())
        .join(_holders(snapshots), HOME, "left")
        .join(starts, HOME, "left")
        .with_columns(prunable_to=pl.when(until > 0).then(until))
    )
    counts = (
        offsets.join(homes.select(HOME, "prunable_to"), HOME, "inner")
        .group_by(HOME)
        .agg(
            log_end_offset=pl.col("offset").max() + 1,
            records=pl.len().cast(pl.Int64),
            prunable_records=(pl.col("offset") < pl.col("prunable_to")).sum().cast(pl.Int64),
        )
    )
    rows = _with_topics(homes.join(counts, HOME, "left"), topics).with_columns(
        prunable_offsets=(pl.coalesce("prunable_to", start) - start).clip(0)
    )
    return contract_frame(with_marks_of(rows, lacking, [HOME]).sort(HOME), "share_prunable")


def _snapshots(table: pa.Table) -> pl.DataFrame:
    if not table.num_rows:
        return _SNAPSHOT.to_frame()
    key = pl.col("key").struct
    made = {HOME: pl.col("partition"), **{name: key.field(name) for name in KEY}}
    return polars_rows(table.select(list(SNAPSHOT_COLUMNS))).select(
        made.get(name, pl.col(name)).cast(kind).alias(name) for name, kind in _SNAPSHOT.items()
    )


def _offsets(snapshots: pl.DataFrame, updates: pa.Table) -> pl.DataFrame:
    """Return `coordinator_partition` and `offset` of every record."""
    found = [snapshots.select(HOME, "offset")]
    if updates.num_rows:
        rows = polars_rows(updates.select(list(UPDATE_COLUMNS)))
        found.append(rows.select(pl.col("partition").cast(pl.Int32).alias(HOME), "offset"))
    return pl.concat(found)


def _holders(snapshots: pl.DataFrame) -> pl.DataFrame:
    """Return by internal partition the live share partition with the oldest last snapshot."""
    last = snapshots.sort("offset").unique([*KEY, HOME], keep="last", maintain_order=True)
    living = last.filter(~pl.col("is_tombstone")).sort("offset")
    return living.unique(HOME, keep="first", maintain_order=True).select(
        HOME,
        held_by_group="group_id",
        held_by_topic_id="topic_id",
        held_by_partition="partition",
        held_by_offset="offset",
        held_since="timestamp",
    )


def _with_topics(rows: pl.DataFrame, topics: pl.DataFrame) -> pl.DataFrame:
    """Add names of topics; an id stands for a topic without one."""
    named = topics.filter(pl.col("topic_id").is_not_null()).group_by("topic_id")
    names = named.agg(held_by_topic=pl.col("topic").min()).rename({"topic_id": "held_by_topic_id"})
    return rows.join(names, "held_by_topic_id", "left").with_columns(
        pl.coalesce("held_by_topic", "held_by_topic_id")
    )
