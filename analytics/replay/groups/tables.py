"""The tables `groups`, `members` and `assignments`, read off the fold of group records."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark.sql import functions as F

from analytics.replay.contract import as_table
from analytics.replay.groups.group_records import GROUP_KEY
from analytics.replay.groups.state import GroupState
from analytics.replay.log.completeness import with_completeness
from analytics.replay.log.coverage import WHOLE, Coverage
from analytics.replay.log.latest import NEVER
from analytics.replay.log.stored_values import instant
from analytics.replay.union import union_all

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

SIMPLE = "simple"


def groups(
    state: GroupState, committed: DataFrame, pending: DataFrame, coverage: Coverage = WHOLE
) -> DataFrame:
    """Return every group the broker would list (``GroupMetadataManager.listGroups``).

    Args:
        state: The groups at the instant.
        committed: The table `committed_offsets` at the same instant.
        pending: The table `pending_offsets`; a group that has one of these offsets and no record
            of its own is a simple group.
        coverage: What the dump holds.
    """
    told = _required(state.told("a_group"), "group_type", "state")
    with_records = told.withColumn("state_timestamp", instant(F.col("state_ms")))
    sources = [each.select(*GROUP_KEY) for each in (committed, pending)]
    if state.committed is not None:
        # That a commit was deleted since, or aborted, does not remove the group it made.
        sources.append(state.committed.select(*GROUP_KEY))
    simple = (
        union_all(sources)
        .distinct()
        .join(with_records.select(*GROUP_KEY), list(GROUP_KEY), "left_anti")
        .select(
            *GROUP_KEY,
            F.lit(SIMPLE).alias("group_type"),
            F.lit("Empty").alias("state"),
            F.lit(0).alias("member_count"),
            F.lit(NEVER).cast("bigint").alias("known_from"),
        )
    )
    rows = with_records.unionByName(simple, allowMissingColumns=True)
    return as_table(with_completeness(rows, coverage), "groups")


def members(state: GroupState) -> DataFrame:
    """Return every member of every group.

    What clients wrote may be unreadable (`missing`); other records are the broker's own.
    """
    told = _required(state.told("a_member"), "group_type", "is_classic")
    return as_table(told.withColumn("complete", F.col("missing").isNull()), "members")


def assignments(state: GroupState, topics: DataFrame) -> DataFrame:
    """Return who owns what.

    Args:
        state: The groups at the instant.
        topics: The table `topics`; ids that it does not name stay without a name.
    """
    names = (
        topics.where("topic_id is not null").groupBy("topic_id").agg(F.max("topic").alias("name"))
    )
    told = _required(state.told("an_assignment"), "group_type", "kind")
    named = told.join(names, "topic_id", "left")
    return as_table(named.withColumn("topic", F.coalesce("topic", "name")), "assignments")


def _required(rows: DataFrame, *names: str) -> DataFrame:
    """Say to Spark, and so to the files, which columns no row lacks: Arrow does not tell it."""
    nothing = {"is_classic": F.lit(col=False)}
    return rows.withColumns(
        {name: F.coalesce(name, nothing.get(name, F.lit(""))) for name in names}
    )
