"""The log of share state as frames: every snapshot, update and tombstone, by share partition.

A share partition's history falls into *lives*, which tombstones end, and these into *runs*. Within
a run its start offset only moves forward, and what is finally dealt with stays so: a run ends where
the state is deleted, where it is initialised anew (``ShareCoordinatorShard.initializeState``:
another state epoch, or no leader and no ranges), and where a start offset goes back.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np
import polars as pl

from analytics.replay.share_fold import (
    SNAPSHOT,
    TOMBSTONE,
    UNCHANGED,
    UPDATE,
    Ranges,
    greatest,
    merged,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

KEY: Final = ("group_id", "topic_id", "partition")
HOME: Final = "coordinator_partition"
COLUMNS: Final = ("partition", "offset", "timestamp", "is_tombstone", "key", "value")
"""What is needed of the decoded tables ``share_snapshot`` and ``share_update``."""

SHARES: Final = pl.Schema(
    {
        "share": pl.Int64(),
        "group_id": pl.String(),
        "topic_id": pl.String(),
        "partition": pl.Int64(),
        HOME: pl.Int64(),
    }
)
"""A share partition and its number."""

_NUMBERS: Final = (
    *("snapshot_epoch", "state_epoch", "leader_epoch", "start_offset"),
    "delivery_complete_count",
)
RECORDS: Final = pl.Schema(
    {
        **dict.fromkeys(("record", "share", "offset", "at", "kind", *_NUMBERS), pl.Int64()),
        "ranges": pl.Int64(),
        "is_first": pl.Boolean(),
        **dict.fromkeys(("start", "life", "run"), pl.Int64()),
    }
)
"""A record, in order of share partition and offset: `record` is its place in that order; `at` epoch
milliseconds, null where it has no time; `kind` SNAPSHOT, TOMBSTONE or UPDATE; epochs, start offset
and count as stored, -1 of what it has not, of what an update leaves unchanged and of a start offset
that is not known yet; `ranges` how many it stores; `is_first` of its share partition; `start` the
start offset in force after it; `life` and `run` number those of all share partitions, ascending."""

RANGES: Final = pl.Schema(
    {
        "record": pl.Int64(),
        "first": pl.Int64(),
        "last": pl.Int64(),
        "state": pl.Int8(),
        "count": pl.Int16(),
    }
)
"""A range of offsets (`last` is included) that a record stores, its delivery state and count."""

_BATCH: Final = {
    "first": "first_offset",
    "last": "last_offset",
    "state": "delivery_state",
    "count": "delivery_count",
}


@dataclass(frozen=True)
class ShareLog:
    """The log of some share partitions.

    Attributes:
        shares: `SHARES`.
        records: `RECORDS`.
        ranges: `RANGES` by record: ascending and not overlapping.
        stored: The same as stored, in the order they are stored.
    """

    shares: pl.DataFrame
    records: pl.DataFrame
    ranges: pl.DataFrame
    stored: pl.DataFrame

    def of_records(self, ranges: pl.DataFrame, *columns: str) -> pl.DataFrame:
        """Add columns of the records to rows with `record`."""
        picked = self.records.select(columns)[ranges["record"]]
        return ranges.hstack(picked)

    @property
    def numbers(self) -> pl.DataFrame:
        """By key of a share partition its number; of one in two internal partitions the last."""
        return self.shares.unique(KEY, keep="last", maintain_order=True).select(*KEY, "share")


def share_log(snapshots: pl.DataFrame, updates: pl.DataFrame) -> ShareLog:
    """Bring decoded records into order.

    Args:
        snapshots: `COLUMNS` of ``share_snapshot``, cut at the instant.
        updates: The same of ``share_update``; those without a value are none (no broker writes
            them).
    """
    rows = pl.concat([_columns(snapshots, is_update=False), _columns(updates, is_update=True)])
    names = [*KEY, HOME]
    shares = rows.select(names).unique().sort(names).with_row_index("share").cast(SHARES)
    records = (
        rows.join(shares, names, "left", maintain_order="left", nulls_equal=True)
        .sort("share", "offset", maintain_order=True)
        .with_row_index("record")
    )
    stored = (
        records.select("record", "state_batches")
        .filter(pl.col("state_batches").list.len() > 0)
        .explode("state_batches")
        .select(
            "record",
            *(pl.col("state_batches").struct.field(old).alias(new) for new, old in _BATCH.items()),
        )
        .cast(RANGES)
    )
    return ShareLog(shares.select(SHARES.names()), _with_runs(records), _disjoint(stored), stored)


def _columns(rows: pl.DataFrame, *, is_update: bool) -> pl.DataFrame:
    """Return a decoded table's columns side by side; numbers are int64, absent ones -1."""
    fields = pl.Struct({old: RANGES[new] for new, old in _BATCH.items()})
    types: dict[str, pl.DataType] = {
        **{name: kind for name, kind in SHARES.items() if name != "share"},
        **dict.fromkeys(("offset", "at", "kind", *_NUMBERS), pl.Int64()),
        "state_batches": pl.List(fields),
    }
    if rows.is_empty():
        # Where a workspace holds no decoded tables, columns have no types either.
        return pl.DataFrame(schema=types)
    value_type = rows.schema["value"]
    assert isinstance(value_type, pl.Struct)
    here = {each.name for each in value_type.fields}
    key, value = pl.col("key").struct, pl.col("value").struct
    kind = (
        pl.lit(UPDATE) if is_update else pl.when("is_tombstone").then(TOMBSTONE).otherwise(SNAPSHOT)
    )
    if is_update:
        rows = rows.filter(~pl.col("is_tombstone"))
    made = {
        **{name: key.field(name) for name in KEY},
        HOME: pl.col("partition"),
        "offset": pl.col("offset"),
        "at": pl.col("timestamp").dt.epoch("us") // 1000,
        "kind": kind,
        **{
            name: value.field(name).fill_null(-1) if name in here else pl.lit(-1)
            for name in _NUMBERS
        },
        "state_batches": value.field("state_batches"),
    }
    return rows.select(each.cast(types[name]).alias(name) for name, each in made.items())


def _with_runs(records: pl.DataFrame) -> pl.DataFrame:
    """Add the start offset in force, and number lives and runs."""
    is_snapshot, is_update = pl.col("kind") == SNAPSHOT, pl.col("kind") == UPDATE
    says = (pl.col("start_offset") != UNCHANGED) | ~is_update | pl.col("is_first")
    is_gone = pl.col("is_first") | (pl.col("kind").shift(1) == TOMBSTONE)
    # The snapshot before each record, as far as it is of the same share partition.
    before = pl.when(is_snapshot).then("state_epoch").forward_fill().shift(1).over("share")
    is_renewed = is_snapshot & (pl.col("state_epoch") != before).fill_null(value=False)
    is_blank = is_snapshot & (pl.col("leader_epoch") == 0) & (pl.col("ranges") == 0)
    was_led = pl.col("leader_epoch").shift(1) > 0
    last = pl.col("start").shift(1)
    is_back = (pl.col("start") < last) & (last >= 0)
    return (
        records.with_columns(
            ranges=pl.col("state_batches").list.len().fill_null(0),
            is_first=(pl.col("share") != pl.col("share").shift(1)).fill_null(value=True),
        )
        .with_columns(
            start=pl.when(says).then("start_offset").forward_fill(),
            life=is_gone.fill_null(value=True).cum_sum(),
        )
        .with_columns(
            run=(is_gone | is_renewed | (is_blank & was_led) | is_back)
            .fill_null(value=True)
            .cum_sum()
        )
        .select(pl.col(name).cast(kind) for name, kind in RECORDS.items())
    )


def _disjoint(stored: pl.DataFrame) -> pl.DataFrame:
    """Return ranges by record, ascending and not overlapping; coordinators write them so."""
    follows = (pl.col("first") > pl.col("last").shift(1)) | (
        pl.col("record") != pl.col("record").shift(1)
    )
    is_sound = follows.fill_null(value=True) & (pl.col("last") >= pl.col("first"))
    if stored.select(is_sound.all()).item():
        return stored
    found = merged(Ranges(*(stored[name].to_numpy() for name in RANGES)))
    columns = (found.key, found.first, found.last, found.state, found.count)
    return pl.DataFrame(dict(zip(RANGES, columns, strict=True)), RANGES)


def size_of(first: pl.Expr, last: pl.Expr) -> pl.Expr:
    """Return how many offsets ranges have: 2^63 of them are more than an int64 holds."""
    return (last - first).reinterpret(signed=False) + pl.lit(1, pl.UInt64)


def counted(sizes: pl.Expr) -> pl.Expr:
    """Return a sum of sizes; more than an int64 holds is the largest."""
    return sizes.sum().clip(upper_bound=np.iinfo(np.int64).max).cast(pl.Int64)


def first_covers(
    ranges: pl.DataFrame, by: str, columns: Sequence[str] = ("record",)
) -> pl.DataFrame:
    """Return for every offset the first range that covers it, in the order of the rows.

    Args:
        ranges: `first`, `last`, and these columns; in order of record.
        by: What the offsets are of: a column of numbers.
        columns: What is wanted of the range that covers it.

    Returns:
        ``by``, `first`, `last` and the columns: ascending, not overlapping.
    """
    place = np.arange(len(ranges))
    key, first, last = (ranges[name].to_numpy() for name in (by, "first", "last"))
    found = greatest(key, first, last, (-place).astype(np.int32))
    pieces = pl.DataFrame(
        {by: found.key, "first": found.first, "last": found.last},
        {by: ranges.schema[by], "first": pl.Int64, "last": pl.Int64},
    )
    return pieces.hstack(ranges.select(columns)[-found.rank.astype(np.int64)])
