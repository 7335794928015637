"""Every member of every group, of all types."""

from __future__ import annotations

from typing import TYPE_CHECKING

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
    return union_all(as_table(of_type(log), "members") for of_type in OF_TYPES)
