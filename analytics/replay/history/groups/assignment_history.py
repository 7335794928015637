"""The table `assignment_history`: who owned what at every epoch, as intervals."""

from __future__ import annotations

import polars as pl

from analytics.replay.contract_frame import contract_frame
from analytics.replay.groups.group_records import CURRENT, TARGET
from analytics.replay.groups.item_kinds import PENDING
from analytics.replay.log.coverage import WHOLE, Coverage
from analytics.replay.log.losses import uncompacted_from

ASSIGNED = (CURRENT, TARGET, PENDING)


def assignment_history(intervals: pl.DataFrame, coverage: Coverage = WHOLE) -> pl.DataFrame:
    """Return the table `assignment_history`.

    At epoch N a member owned what is from an epoch up to N and to none or a later one. What ended
    together with a life of its group was owned through the last epoch of that life.

    Args:
        intervals: Of `assignment_intervals`.
        coverage: What the dump holds.
    """
    at, until = pl.col("at").struct, pl.col("until").struct
    from_epoch = pl.coalesce(at.field("epoch_at"), "epoch", at.field("epoch_by"), 0)
    told = pl.coalesce(until.field("epoch_at"), until.field("epoch_by"), from_epoch)
    to_epoch = pl.when(until.field("is_closing")).then(told + 1).otherwise(told)
    owned = intervals.filter(pl.col("kind").is_in(ASSIGNED))
    rows = owned.unnest("about").with_columns(
        pl.col("family").alias("group_type"),
        from_epoch.alias("from_epoch"),
        pl.when(pl.col("until").is_not_null()).then(to_epoch).alias("to_epoch"),
        at.field("offset").alias("from_offset"),
        until.field("offset").alias("to_offset"),
        at.field("timestamp").alias("from_timestamp"),
        until.field("timestamp").alias("to_timestamp"),
        pl.coalesce("epoch", at.field("epoch_at")).alias("member_epoch"),
        (at.field("offset") < uncompacted_from(coverage)).alias("from_is_bound"),
    )
    return contract_frame(rows, "assignment_history")
