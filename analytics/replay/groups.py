"""Every group the broker would list (``GroupMetadataManager.listGroups``), of all types."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from pyspark.sql import functions as F

from analytics.replay.classic_groups import classic_groups
from analytics.replay.completeness import with_completeness
from analytics.replay.consumer_groups import consumer_groups
from analytics.replay.contract import as_table
from analytics.replay.coverage import WHOLE, Coverage
from analytics.replay.group_log import GroupLog
from analytics.replay.latest import NEVER
from analytics.replay.lives import GROUP_KEY
from analytics.replay.share_groups import share_groups
from analytics.replay.streams_groups import streams_groups
from analytics.replay.union import union_all

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

SIMPLE = "simple"


def groups(
    log: GroupLog, committed: DataFrame, pending: DataFrame, coverage: Coverage = WHOLE
) -> DataFrame:
    """Return the table `groups`.

    Args:
        log: The groups' records at the instant.
        committed: The table `committed_offsets` at the same instant.
        pending: The table `pending_offsets`; a group that has one of these offsets and no record
            of its own is a simple group.
        coverage: What the dump holds.
    """
    with_records = union_all(
        of_type(log) for of_type in (classic_groups, consumer_groups, share_groups, streams_groups)
    )
    rows = with_records.unionByName(
        _simple_groups(log, (committed, pending)), allowMissingColumns=True
    )
    return as_table(with_completeness(rows, coverage), "groups")


def _simple_groups(log: GroupLog, offsets: Iterable[DataFrame]) -> DataFrame:
    """Return the groups that commits alone made and that have no record of their own."""
    sources = [each.select(*GROUP_KEY) for each in offsets]
    if log.rules.groups_end_by_tombstones:
        # That a commit was deleted since, or aborted, does not remove the group it made.
        sources.append(log.committed.select(*GROUP_KEY))
    named = union_all(sources).distinct()
    return named.join(log.alive.select(*GROUP_KEY), list(GROUP_KEY), "left_anti").select(
        "group_id",
        F.lit(SIMPLE).alias("group_type"),
        F.lit("Empty").alias("state"),
        F.lit(0).alias("member_count"),
        "coordinator_partition",
        F.lit(NEVER).cast("bigint").alias("known_from"),
    )
