"""The fold of group records on Spark: each partition of ``__consumer_offsets`` is one log."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import pyspark.sql.functions as F
from pyspark.sql.pandas.types import from_arrow_schema

from analytics.replay.groups.columns import COMMIT, RECORDS, STATE
from analytics.replay.groups.fold import group_state
from analytics.replay.groups.group_records import GROUP, GROUP_KEY
from analytics.replay.log.latest import later
from analytics.spark_worker import on_worker

if TYPE_CHECKING:
    from collections.abc import Iterator

    import pyarrow as pa
    from pyspark.sql import DataFrame

    from analytics.replay.log.as_of import Decoded
    from analytics.replay.log.rules import ReplayRules


@dataclass(frozen=True)
class GroupState:
    """What the coordinators keep of groups at an instant.

    Attributes:
        rows: `STATE`.
        committed: The groups with a commit since they were last removed, in effect or not:
            `coordinator_partition`, `group_id`, `offset` (of the first). None where offsets alone
            make a group, before 4.0.
    """

    rows: DataFrame
    committed: DataFrame | None

    def told(self, what: str) -> DataFrame:
        """Return the rows of one kind: `GROUP_KEY` and the columns of ``what``."""
        return self.rows.where(F.col(what).isNotNull()).select(*GROUP_KEY, f"{what}.*")


def folded_groups(log: DataFrame, decoded: Decoded, rules: ReplayRules) -> GroupState:
    """Fold the records about groups; several tables are made of it, so it is kept.

    Args:
        log: Of `coordinator_log`, cut at an instant.
        decoded: The decoded tables, cut likewise.
        rules: Of the release.
    """
    records, committed = log.select("*", "position.leader_epoch").select(*RECORDS.names), None
    if rules.groups_end_by_tombstones:
        committed = _committed(decoded["offset_commit"], log).localCheckpoint()
        made = committed.withColumn("kind", F.lit(COMMIT)).withColumn(
            "is_tombstone", F.lit(col=False)
        )
        records = records.unionByName(made, allowMissingColumns=True)

    @on_worker
    def fold(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        yield from group_state(batches, rules)

    in_order = records.repartition(GROUP_KEY[0]).sortWithinPartitions(GROUP_KEY[0], "offset")
    rows = in_order.mapInArrow(fold, from_arrow_schema(STATE)).localCheckpoint()
    return GroupState(rows, committed)


def groups_gone(state: GroupState) -> DataFrame | None:
    """Return the groups whose offsets outlive them: nothing is answered for them.

    The tombstone of a group leaves its offsets in memory (``OffsetMetadataManager``), where
    nobody is told of them until a commit or a member makes the group again. Brokers delete the
    offsets first, or write what replaces the group in the same batch; where compaction took that,
    the coordinator that loads what is left has the offsets and no group.
    """
    if state.committed is None:
        return None
    return state.rows.where(
        "a_group is null and a_member is null and an_assignment is null"
    ).select(*GROUP_KEY)


def _committed(commits: DataFrame, log: DataFrame) -> DataFrame:
    """Return the first commit of each group since a tombstone of a group, of any type."""
    removed = (
        log.where((F.col("role") == GROUP) & F.col("is_tombstone"))
        .groupBy(*GROUP_KEY)
        .agg(F.max("offset").alias("removed_at"))
    )
    return (
        commits.where("not is_tombstone")
        .select(
            F.col("partition").alias("coordinator_partition"),
            F.col("key.group").alias("group_id"),
            "offset",
        )
        .join(F.broadcast(removed), list(GROUP_KEY), "left")
        .where(later(F.col("offset"), F.col("removed_at")))
        .groupBy(*GROUP_KEY)
        .agg(F.min("offset").alias("offset"))
    )
