"""The state of every share partition that the share coordinator held, one row each."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import polars as pl
import pyarrow as pa

from analytics.replay.log.arrow_rows import arrow_rows, polars_rows
from analytics.replay.share.share_fold import fold
from analytics.replay.share.share_records import RECORDS, SNAPSHOT, TOMBSTONE, UPDATE

if TYPE_CHECKING:
    from analytics.replay.log.as_of import Decoded

EARLY_LAYOUT: Final = "4.0"
"""Snapshots without times, epochs of 16 bits."""
_RECORDS: Final = polars_rows(RECORDS.empty_table()).schema


def share_states(decoded: Decoded, epoch_without_snapshot: int = 0) -> pl.DataFrame:
    """Replay ``share_snapshot`` and ``share_update``, already cut; the columns are `STATES`.

    Args:
        decoded: Those two of whole share partitions, in any order.
        epoch_without_snapshot: The state epoch where there are only updates, which name none.
    """
    is_gone = pl.col("is_tombstone")
    snapshots = decoded["share_snapshot"]
    # Brokers never write an update without a value, and could not replay one.
    updates = decoded["share_update"].filter(~is_gone)
    kind = pl.when(is_gone).then(TOMBSTONE).otherwise(SNAPSHOT)
    records = [_records(snapshots, kind), _records(updates, pl.lit(UPDATE))]
    states = polars_rows(fold(pa.concat_tables(arrow_rows(each) for each in records)))
    epoch = pl.when("has_snapshot").then("state_epoch").otherwise(epoch_without_snapshot)
    return states.with_columns(epoch.cast(pl.Int32).alias("state_epoch"))


def _records(frame: pl.DataFrame, kind: pl.Expr) -> pl.DataFrame:
    """Return rows of a decoded table under the names of `RECORDS`."""
    key, value = pl.col("key").struct, pl.col("value").struct
    held = frame["value"].struct.fields
    named = {name: value.field(name) for name in held} | {
        "coordinator_partition": pl.col("partition"),
        "group_id": key.field("group_id"),
        "topic_id": key.field("topic_id"),
        "partition": key.field("partition"),
        "record_offset": pl.col("offset"),
        "kind": kind,
        "is_early_layout": pl.col("value_layout").eq_missing(EARLY_LAYOUT),
    }
    return frame.select(
        named.get(name, pl.lit(None)).cast(type_).alias(name) for name, type_ in _RECORDS.items()
    )
