"""Groups that are there for their offsets alone, and give way to the first type that comes.

Commits make one where there is no group, and a classic value without members and protocol type is
one (``ClassicGroup.isSimpleGroup``). Since 4.0 even a tombstone of a consumer or streams group
takes it over, and that of the group itself ends it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark.sql import functions as F

from analytics.replay.as_of import Decoded
from analytics.replay.group_records import CLASSIC, CONSUMER, GROUP, STREAMS
from analytics.replay.latest import later
from analytics.replay.lives import GROUP_KEY

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


def simple_values(decoded: Decoded, last: DataFrame) -> DataFrame:
    """Return the last classic values of groups that nobody would miss.

    Args:
        decoded: Cut at an instant.
        last: What `last_of_each` returns.

    Returns:
        `coordinator_partition`, `group_id`, `simple_from`.
    """
    protocol_type, members = F.col("value.protocol_type"), F.col("value.members")
    is_simple = (F.coalesce(protocol_type, F.lit("")) == "") & (F.size(members) == 0)
    values = decoded["group_metadata"].where(is_simple)
    return values.select(
        F.col("partition").alias("coordinator_partition"),
        F.col("key.group").alias("group_id"),
        F.col("offset").alias("simple_from"),
    ).join(
        last.where((F.col("family") == CLASSIC) & (F.col("role") == GROUP)).select(
            *GROUP_KEY, F.col("last_value").alias("simple_from")
        ),
        [*GROUP_KEY, "simple_from"],
    )


def with_simple_groups(
    last: DataFrame, alive: DataFrame, committed: DataFrame, simple: DataFrame
) -> DataFrame:
    """Say which groups took a simple one over, and from where on their tombstones count.

    A simple group is there before the first value of the type that follows it.

    Args:
        last: What `last_of_each` returns.
        alive: What `lives` returns of it.
        committed: `coordinator_partition`, `group_id`, `committed_from` (bigint): the first commit
            since the group was last removed.
        simple: What `simple_values` returns.

    Returns:
        `alive` with the groups that took others over, and with `made_by` of the simple group.
    """
    removed = (
        last.where((F.col("role") == GROUP) & F.col("family").isin(CONSUMER, STREAMS))
        .groupBy(*GROUP_KEY)
        .agg(F.max("last_tombstone").alias("removed_at"))
    )
    is_simple = (F.col("family") == CLASSIC) & F.col("simple_from").isNotNull()
    by_values = (
        alive.join(simple, list(GROUP_KEY), "left")
        .join(removed, list(GROUP_KEY), "left")
        .where(~(is_simple & later(F.col("removed_at"), F.col("simple_from"))))
        .drop("removed_at")
        .localCheckpoint()
    )
    by_commits = committed.withColumnRenamed("committed_from", "simple_from")
    over = _taken_over(
        last,
        by_values.where(is_simple)
        .select(*GROUP_KEY, "simple_from")
        .unionByName(by_commits.join(by_values, list(GROUP_KEY), "left_anti")),
    ).localCheckpoint()
    first = F.least(
        "made_by",
        F.when(later(F.col("committed_from"), F.col("since")), F.col("committed_from")),
        F.when(F.col("simple_from") == F.col("since"), F.col("simple_from")),
    )
    return (
        by_values.join(committed, list(GROUP_KEY), "left")
        .withColumn("made_by", F.when(F.col("made_by").isNotNull(), first))
        .drop("committed_from", "simple_from")
        .join(over.select(*GROUP_KEY), list(GROUP_KEY), "left_anti")
        .unionByName(over)
    )


def _taken_over(last: DataFrame, simple: DataFrame) -> DataFrame:
    """Return the simple groups that the tombstone of a newer type took over.

    Args:
        last: As for `lives`.
        simple: `coordinator_partition`, `group_id`, `simple_from` (bigint): groups that no record
            of another type made, and what made them.

    Returns:
        The columns of `lives`.
    """
    return (
        last.where(F.col("family").isin(CONSUMER, STREAMS))
        .groupBy(*GROUP_KEY)
        .agg(
            F.max("last_tombstone").alias("tombstone"),
            F.max_by("family", "last_tombstone").alias("family"),
        )
        .join(simple, list(GROUP_KEY), "inner")
        .where(later(F.col("tombstone"), F.col("simple_from")))
        .select(
            *GROUP_KEY,
            "family",
            F.col("simple_from").alias("since"),
            F.col("simple_from").alias("made_by"),
        )
    )
