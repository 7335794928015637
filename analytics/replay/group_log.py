"""What the coordinators keep of groups at an instant: all tables about groups stand on it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from pyspark.sql import functions as F

from analytics.replay.as_of import Decoded
from analytics.replay.group_records import CLASSIC, GROUP, group_records, table_name
from analytics.replay.latest import later
from analytics.replay.lives import GROUP_KEY, in_force, last_of_each, lives
from analytics.replay.rules import ReplayRules
from analytics.replay.simple_groups import simple_values, with_simple_groups

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


@dataclass(frozen=True)
class GroupLog:
    """Decoded tables cut at an instant, and which of their records are in force.

    Attributes:
        decoded: The tables.
        rules: Of the release.
        alive: `lives`: the groups that have records.
        kept: `in_force`: what their present lives are made of.
        committed: The groups with a commit since they were last removed, in effect or not:
            `coordinator_partition`, `group_id`, `committed_from` (its offset, the first).
        gone: `coordinator_partition`, `group_id` of the groups that were removed and not made
            again, by a commit neither; None where offsets alone make a group.
    """

    decoded: Decoded
    rules: ReplayRules
    alive: DataFrame
    kept: DataFrame
    committed: DataFrame
    gone: DataFrame | None = None

    def records(self, family: str, role: str) -> DataFrame:
        """Return the decoded records about groups of a type in a role."""
        return self.decoded[table_name(family, role)]

    def groups_of(self, family: str) -> DataFrame:
        """Return the living groups of a type: `coordinator_partition`, `group_id`, `since`."""
        return self.alive.where(F.col("family") == family).drop("family")

    def about_groups(self, family: str, role: str) -> DataFrame:
        """Return the group's key, `last_value`, `last_tombstone` of what is about whole groups."""
        return self.kept.where((F.col("family") == family) & (F.col("role") == role)).select(
            *GROUP_KEY, "last_value", "last_tombstone"
        )


def group_log(decoded: Decoded, rules: ReplayRules) -> GroupLog:
    """Decide which records about groups are in force.

    Many tables are made from the result, so it is computed here and now (four small tables).

    Args:
        decoded: Cut at an instant.
        rules: Of the release.
    """
    records = group_records(decoded)
    last = last_of_each(records).localCheckpoint()
    committed = _committed(decoded, last)
    alive = _with_first_values(lives(last).localCheckpoint(), records)
    if rules.groups_end_by_tombstones:
        committed = committed.localCheckpoint()
        alive = with_simple_groups(last, alive, committed, simple_values(decoded, last))
    alive = alive.localCheckpoint()
    kept = in_force(last, alive).localCheckpoint()
    gone = _gone(last, alive, committed) if rules.groups_end_by_tombstones else None
    return GroupLog(decoded, rules, alive, kept, committed, gone)


def groups_gone(log: GroupLog) -> DataFrame | None:
    """Return the groups whose offsets outlive them: nothing is answered for them.

    The tombstone of a group leaves its offsets in memory (``OffsetMetadataManager``), where
    nobody is told of them until a commit or a member makes the group again. Brokers delete the
    offsets first, or write what replaces the group in the same batch; where compaction took that,
    the coordinator that loads what is left has the offsets and no group.
    """
    return log.gone


def _gone(last: DataFrame, alive: DataFrame, committed: DataFrame) -> DataFrame:
    removed = last.where((F.col("role") == GROUP) & F.col("last_tombstone").isNotNull())
    there = alive.select(*GROUP_KEY).unionByName(committed.select(*GROUP_KEY))
    return (
        removed.select(*GROUP_KEY)
        .distinct()
        .join(there, list(GROUP_KEY), "left_anti")
        .localCheckpoint()
    )


def _with_first_values(alive: DataFrame, records: DataFrame) -> DataFrame:
    """Say of groups that were there before, too, which value made them this time."""
    again = alive.where((F.col("family") != CLASSIC) & F.col("made_by").isNull())
    if again.isEmpty():
        return alive
    made = (
        records.where("creates and not is_tombstone")
        .join(F.broadcast(again.drop("made_by")), [*GROUP_KEY, "family"])
        .where(later(F.col("offset"), F.col("since")))
        .groupBy(*GROUP_KEY)
        .agg(F.min("offset").alias("made_here"))
    )
    return (
        alive.join(made, list(GROUP_KEY), "left")
        .withColumn("made_by", F.coalesce("made_by", "made_here"))
        .drop("made_here")
    )


def _committed(decoded: Decoded, last: DataFrame) -> DataFrame:
    """Return the first commit of each group since a tombstone of a group, of any type."""
    removed = (
        last.where(F.col("role") == GROUP)
        .groupBy(*GROUP_KEY)
        .agg(F.max("last_tombstone").alias("removed_at"))
    )
    commits = decoded["offset_commit"].select(
        F.col("partition").alias("coordinator_partition"),
        F.col("key.group").alias("group_id"),
        F.when(~F.col("is_tombstone"), F.col("offset")).alias("committed_at"),
    )
    return (
        commits.join(F.broadcast(removed), list(GROUP_KEY), "left")
        .where(later(F.col("committed_at"), F.col("removed_at")))
        .groupBy(*GROUP_KEY)
        .agg(F.min("committed_at").alias("committed_from"))
    )
