"""What the coordinators keep of groups at an instant: all tables about groups stand on it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from pyspark.sql import functions as F

from analytics.replay.as_of import Decoded
from analytics.replay.group_records import GROUP, group_records, table_name
from analytics.replay.lives import GROUP_KEY, in_force, last_of_each, lives
from analytics.replay.rules import ReplayRules

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
        removed: The last tombstone of a group, of any type: `coordinator_partition`, `group_id`,
            `removed_at` (its offset).
    """

    decoded: Decoded
    rules: ReplayRules
    alive: DataFrame
    kept: DataFrame
    removed: DataFrame

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

    Many tables are made from the result, so it is computed here and now (three small tables).

    Args:
        decoded: Cut at an instant.
        rules: Of the release.
    """
    last = last_of_each(group_records(decoded)).localCheckpoint()
    alive = lives(last).localCheckpoint()
    removed = (
        last.where(F.col("role") == GROUP)
        .groupBy(*GROUP_KEY)
        .agg(F.max("last_tombstone").alias("removed_at"))
    )
    return GroupLog(decoded, rules, alive, in_force(last, alive).localCheckpoint(), removed)
