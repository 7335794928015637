"""Where a tombstone takes over a simple group: the group is a consumer or streams group from there.

Since 4.0 (``GroupMetadataManager``: get or create by a record of another type). A simple group is
made by a commit where there is no group, or by a classic value without members and protocol type;
`analytics.replay.groups.lives` decides the same of the present lives alone.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark.sql import Window
from pyspark.sql import functions as F

from analytics.replay.groups.group_records import CLASSIC, CONSUMER, GROUP, GROUP_KEY, STREAMS

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

SIMPLE = "simple"
_STRETCH = (*GROUP_KEY, "stretch")


def with_takeovers(steps: DataFrame, commits: DataFrame | None) -> DataFrame:
    """Add `takes_over` to `coordinator_log`: what a record took over, `classic`, `simple` or null.

    Args:
        steps: Of `coordinator_log`, at least the columns that are looked at here.
        commits: Decoded `offset_commit`; None where tombstones take nothing over, before 4.0.
    """
    nothing = F.lit(None).cast("string")
    if commits is None:
        return steps.withColumn("takes_over", nothing)
    placed = _with_stretches(steps).localCheckpoint()
    kept = placed.drop("stretch", "met", "may_take")
    if placed.where("may_take").isEmpty():
        return kept.withColumn("takes_over", nothing)
    made = _simple_from(placed.where("may_take"), commits)
    first = (
        placed.where("may_take")
        .join(F.broadcast(made), list(_STRETCH), "left")
        .where((F.col("met.label") == CLASSIC) | (F.col("offset") > F.col("made_at")))
        .groupBy(*_STRETCH)
        .agg(
            F.min("offset").alias("offset"),
            F.first(F.coalesce("met.label", F.lit(SIMPLE))).alias("label"),
        )
        .select(
            *GROUP_KEY,
            "offset",
            F.when(F.col("label") == CLASSIC, CLASSIC).otherwise(SIMPLE).alias("takes_over"),
        )
    )
    return kept.join(F.broadcast(first), [*GROUP_KEY, "offset"], "left")


def _with_stretches(steps: DataFrame) -> DataFrame:
    """Number the stretches between records that make or remove a group.

    Returns:
        The steps with `stretch` (int), `met` (struct `label`, `is_simple`, `offset` of the record
        the stretch follows; null before the first) and `may_take` (boolean: takes over what there
        is, if there is a simple group).
    """
    before = (
        Window.partitionBy(*GROUP_KEY).orderBy("offset").rowsBetween(Window.unboundedPreceding, -1)
    )
    family, is_tombstone = F.col("family"), F.col("is_tombstone")
    births = F.col("creates") & ~is_tombstone
    removals = (F.col("role") == GROUP) & is_tombstone
    label = F.when(births, family).when(removals, SIMPLE)
    mark = F.when(
        label.isNotNull(), F.struct(label.alias("label"), is_simple().alias("is_simple"), "offset")
    )
    met = F.col("met")
    # What follows a removal, or nothing at all, may be a group that commits made.
    simple = met.isNull() | (met["label"] == SIMPLE) | met["is_simple"]
    newer = is_tombstone & family.isin(CONSUMER, STREAMS)
    return (
        steps.withColumn("mark", mark)
        .withColumn("met", F.last("mark", ignorenulls=True).over(before))
        .withColumn("stretch", F.count("mark").over(before))
        .withColumn("may_take", newer & F.coalesce(simple, F.lit(col=False)))
        .drop("mark")
    )


def is_simple() -> Column:
    """Whether a step is the record of a classic group without members and protocol type."""
    no_protocol = F.col("protocol_type").isNull()
    nobody = F.size(F.coalesce("items", F.array())) == 0
    return (F.col("family") == CLASSIC) & no_protocol & nobody & ~F.col("is_tombstone")


def _simple_from(tombstones: DataFrame, commits: DataFrame) -> DataFrame:
    """Return the first commit in each stretch without a group: `_STRETCH` and `made_at`."""
    without = (
        tombstones.where(F.col("met").isNull() | (F.col("met.label") == SIMPLE))
        .groupBy(*_STRETCH)
        .agg(F.max("offset").alias("until"), F.max("met.offset").alias("since"))
    )
    committed = commits.where(~F.col("is_tombstone")).select(
        F.col("partition").alias("coordinator_partition"),
        F.col("key.group").alias("group_id"),
        F.col("offset").alias("committed_at"),
    )
    at = F.col("committed_at")
    return (
        committed.join(F.broadcast(without), list(GROUP_KEY))
        .where((at > F.coalesce("since", F.lit(-1))) & (at < F.col("until")))
        .groupBy(*_STRETCH)
        .agg(F.min("committed_at").alias("made_at"))
    )
