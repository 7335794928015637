"""The table `share_partition_epochs`: every snapshot, update and deletion of share state, in order.

The numbers are those stored. What an update leaves unchanged (-1) is null, and what it is compared
with is the last that was told before it.
"""

from __future__ import annotations

import polars as pl

from analytics.contracts import contract_frame
from analytics.replay.history.neighbours import at, in_order, last_before, so_far
from analytics.replay.log.coverage import WHOLE, Coverage
from analytics.replay.log.marks import with_marks_of_records
from schemas import SHARE_GROUP_STATE

SNAPSHOT, UPDATE, TOMBSTONE = "snapshot", "update", "tombstone"
KEY = ("coordinator_partition", "group_id", "topic_id", "partition")
_STORED = ("leader_epoch", "start_offset", "delivery_complete_count")


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
