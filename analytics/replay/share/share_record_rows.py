"""The records of share state as their history takes them, from decoded tables."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import polars as pl

from analytics.replay.log.record_position import IN_DUMP, POSITION
from analytics.replay.share.share_records import ARCHIVED

if TYPE_CHECKING:
    from analytics.replay.log.as_of import Decoded

_PLACE: Final = {
    "coordinator_partition": pl.col("partition"),
    "group_id": pl.col("key").struct.field("group_id"),
    "topic_id": pl.col("key").struct.field("topic_id"),
    "partition": pl.col("key").struct.field("partition"),
    "record_offset": pl.col("offset"),
    "at": pl.col("timestamp"),
}
_OF_SNAPSHOT: Final = {
    "write_timestamp": pl.Int64(),
    "create_timestamp": pl.Int64(),
    "state_epoch": pl.Int32(),
}
_OF_BOTH: Final = ("snapshot_epoch", "leader_epoch", "start_offset", "delivery_complete_count")


def share_record_rows(decoded: Decoded) -> pl.DataFrame:
    """Return snapshots and updates, as `share_partition_epochs` takes them."""
    return pl.concat(
        _rows(decoded[name], is_update=name == "share_update")
        for name in ("share_snapshot", "share_update")
    )


def archives(decoded: Decoded) -> pl.DataFrame:
    """Return updates that archive records, as `share_events` takes them: `archived` has ranges."""
    is_archived = pl.element().struct.field("delivery_state") == ARCHIVED
    ranges = pl.col("value").struct.field("state_batches")
    updates = decoded["share_update"].select(
        **_PLACE,
        **{name: pl.col(name) for name in POSITION},
        archived=ranges.list.eval(pl.element().filter(is_archived)),
    )
    return updates.filter(pl.col("archived").list.len() > 0)


def _rows(records: pl.DataFrame, *, is_update: bool) -> pl.DataFrame:
    value = pl.col("value").struct
    of_snapshot = {
        name: pl.lit(None, type_) if is_update else value.field(name).cast(type_)
        for name, type_ in _OF_SNAPSHOT.items()
    }
    return records.select(
        **_PLACE,
        is_update=is_update,
        is_tombstone="is_tombstone",
        **of_snapshot,
        **{name: value.field(name) for name in _OF_BOTH},
        ranges=value.field("state_batches").list.len().cast(pl.Int32),
        coordinator_epoch="leader_epoch",
        **{name: pl.col(name) for name in IN_DUMP},
    )
