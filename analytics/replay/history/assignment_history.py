"""The table `assignment_history`: who owned what at every epoch, as intervals."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark.sql import functions as F

from analytics.replay.contract import as_table
from analytics.replay.groups.coordinator_log import PENDING
from analytics.replay.groups.group_records import CURRENT, TARGET
from analytics.replay.history.shown_from import shown_from
from analytics.replay.log.coverage import WHOLE, Coverage

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

ASSIGNED = (CURRENT, TARGET, PENDING)


def assignment_history(runs: DataFrame, coverage: Coverage = WHOLE) -> DataFrame:
    """Return the table `assignment_history`.

    At epoch N a member owned what is from an epoch up to N and to none or a later one. What ended
    together with a life of its group was owned through the last epoch of that life.

    Args:
        runs: Of `runs`, with names of topics where some are known.
        coverage: What the dump holds.
    """
    owned = runs.where(F.col("kind").isin(*ASSIGNED))
    rows = owned.select(
        "*",
        F.col("family").alias("group_type"),
        "about.group_instance_id",
        "about.client_id",
        "about.client_host",
        _from_epoch().alias("from_epoch"),
        F.when(F.col("until").isNotNull(), _to_epoch()).alias("to_epoch"),
        F.col("at.offset").alias("from_offset"),
        F.col("until.offset").alias("to_offset"),
        F.col("at.timestamp").alias("from_timestamp"),
        F.col("until.timestamp").alias("to_timestamp"),
        F.coalesce("epoch", "at.epoch_at").alias("member_epoch"),
        (F.col("at.offset") < shown_from(coverage)).alias("from_is_bound"),
    )
    return as_table(rows, "assignment_history")


def _from_epoch() -> Column:
    return F.coalesce("at.epoch_at", "epoch", "at.epoch_by", F.lit(0))


def _to_epoch() -> Column:
    told = F.coalesce("until.epoch_at", "until.epoch_by", _from_epoch())
    return F.when(F.col("until.is_closing"), told + 1).otherwise(told)
