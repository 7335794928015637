"""Who owns what, of all types of groups, with names for topic ids."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark.sql import functions as F

from analytics.replay.classic_groups import classic_assignments
from analytics.replay.consumer_groups import consumer_assignments
from analytics.replay.contract import as_table
from analytics.replay.group_log import GroupLog
from analytics.replay.share_groups import share_assignments
from analytics.replay.streams_groups import streams_assignments
from analytics.replay.union import union_all

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

OF_TYPES = (classic_assignments, consumer_assignments, share_assignments, streams_assignments)


def assignments(log: GroupLog, topics: DataFrame) -> DataFrame:
    """Return the table `assignments`.

    Args:
        log: The groups' records at the instant.
        topics: The table `topics`; ids that it does not name stay without a name.
    """
    rows = union_all(of_type(log) for of_type in OF_TYPES)
    names = (
        topics.where("topic_id is not null").groupBy("topic_id").agg(F.max("topic").alias("name"))
    )
    named = rows.join(names, "topic_id", "left").withColumn("topic", F.coalesce("topic", "name"))
    return as_table(named, "assignments")
