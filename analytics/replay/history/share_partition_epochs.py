"""The table `share_partition_epochs`: every snapshot, update and deletion of share state, in order.

The numbers are those stored. What an update leaves unchanged (-1) is null, and what it is compared
with is the last that was told before it. The records are taken from decoded tables
(`share_record_rows`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import polars as pl

from analytics.contracts import contract_frame
from analytics.replay.log.losses import WHOLE, Coverage, with_marks_of_records
from analytics.replay.log.row_columns import IN_DUMP, POSITION
from analytics.replay.log.spans import at, in_order, last_before, so_far
from analytics.replay.share.share_records import ARCHIVED
from schemas import SHARE_GROUP_STATE

if TYPE_CHECKING:
    from analytics.replay.log.as_of import Decoded

SNAPSHOT, UPDATE, TOMBSTONE = "snapshot", "update", "tombstone"
KEY = ("coordinator_partition", "group_id", "topic_id", "partition")
_STORED = ("leader_epoch", "start_offset", "delivery_complete_count")
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


def share_partition_epochs(
    records: pl.DataFrame, names: pl.DataFrame, coverage: Coverage = WHOLE
) -> pl.DataFrame:
    """Return the table `share_partition_epochs`.

    Args:
        records: Snapshots and updates, one row each: `KEY`, `is_update`, `is_tombstone`, the fields
            of the value, `ranges` (how many it has), `record_offset`, `at`, `coordinator_epoch` and
            where the record lies.
        names: Of topics: `topic_id` and `name`, each id once.
        coverage: What the dump holds.
    """
    gone, is_update = pl.col("is_tombstone"), pl.col("is_update")
    written, created = pl.col("write_timestamp"), pl.col("create_timestamp")
    kind = pl.when(is_update).then(pl.lit(UPDATE)).when(gone).then(pl.lit(TOMBSTONE))
    stored = pl.col(_STORED)
    rows = in_order(records.filter(~(is_update & gone)), KEY, "record_offset").with_columns(
        kind.otherwise(pl.lit(SNAPSHOT)).alias("kind"),
        pl.when(~is_update & (written > 0) & (created > 0)).then(written != created).alias("cold"),
        pl.when(~is_update).then("state_epoch").alias("state_epoch"),
        pl.when(stored != -1).then(stored),
    )
    told = _with_last(rows).with_columns(_advance(), _mismatch())
    named = told.join(names, on="topic_id", how="left").rename({"name": "topic"})
    in_log = named.with_columns(log=pl.lit(SHARE_GROUP_STATE))
    marked = with_marks_of_records(in_log, coverage, "record_offset", log="log")
    return contract_frame(marked, "share_partition_epochs")


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


def _with_last(rows: pl.DataFrame) -> pl.DataFrame:
    """Add `life`, and the rows that snapshot and start offset were told in last before.

    A tombstone ends what was before: nothing behind it is compared with that.
    """
    ends = pl.col("kind") == TOMBSTONE
    return rows.with_columns(
        (so_far(ends) - ends.cast(pl.Int32)).alias("life"),
        last_before(pl.col("kind") == SNAPSHOT).alias("last_snapshot"),
        last_before(pl.col("start_offset").is_not_null()).alias("last_start"),
    )


def _advance() -> pl.Expr:
    moved = pl.col("start_offset") - at("last_start", "start_offset")
    same_life = at("last_start", "life") == pl.col("life")
    return pl.when(same_life & (moved != 0)).then(moved).alias("start_offset_advance")


def _mismatch() -> pl.Expr:
    known = at("last_snapshot", "life") == pl.col("life")
    same = known & (at("last_snapshot", "snapshot_epoch") == pl.col("snapshot_epoch"))
    differs = ~same.fill_null(value=False)
    return pl.when(pl.col("kind") == UPDATE).then(differs).alias("epoch_mismatch")


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
