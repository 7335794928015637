"""Every member of every group, of all types."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark.sql import functions as F

from analytics.replay.classic_groups import classic_members
from analytics.replay.consumer_groups import consumer_members
from analytics.replay.contract import as_table
from analytics.replay.group_log import GroupLog
from analytics.replay.share_groups import share_members
from analytics.replay.streams_groups import streams_members
from analytics.replay.union import union_all

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

OF_TYPES = (classic_members, consumer_members, share_members, streams_members)


def members(log: GroupLog) -> DataFrame:
    """Return the table `members`."""
    return union_all(as_table(_with_doubts(of_type(log)), "members") for of_type in OF_TYPES)


def _with_doubts(rows: DataFrame) -> DataFrame:
    """Add what is known of bytes that clients wrote; other records are the broker's own."""
    doubts = {
        "subscription_fields_written": "int",
        "assignment_fields_written": "int",
        "missing": "string",
    }
    absent = {name: type_ for name, type_ in doubts.items() if name not in rows.columns}
    return rows.withColumns(
        {name: F.lit(None).cast(type_) for name, type_ in absent.items()}
    ).withColumn("complete", F.col("missing").isNull())
