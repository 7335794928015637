"""The table `rebalances`: each epoch with what led to it.

Whether a member timed out or left by itself is in no record, nor is a generation that was joined
and never synced. Of a coordinator that failed only what it had stored is known.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark.sql import Window
from pyspark.sql import functions as F

from analytics.evaluate.rebalances.storms import CHURN
from analytics.replay.contract import as_table
from analytics.replay.groups.group_records import CLASSIC
from analytics.replay.history.membership_changes import FENCED, LEFT
from analytics.replay.log.coverage import WHOLE, Coverage
from analytics.replay.log.losses import lost_between, with_missing

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

_GROUP = ("coordinator_partition", "group_id")
_CHANGE = ("change", "member_id")
_EMPTY = "Empty"


def rebalances(
    epochs: DataFrame,
    changes: DataFrame,
    generations: DataFrame,
    coverage: Coverage = WHOLE,
) -> DataFrame:
    """Return the table `rebalances`.

    Args:
        epochs: The table `group_epochs`.
        changes: The table `membership_changes`.
        generations: Decoded `group_metadata`, cut at the instant.
        coverage: What the dump holds.
    """
    life = Window.partitionBy(*_GROUP, "life").orderBy("from_offset")
    last = F.struct("epoch", "state", "leader_epoch", "from_timestamp", "from_offset")
    before = F.lag(last).over(life)
    key = [*_GROUP, "life", "epoch"]
    again = _stored_again(generations)
    rows = (
        epochs.withColumn("before", before)
        .withColumn("next_offset", F.lead("from_offset").over(life))
        .join(_who(_led_to(changes, epochs)), key, "left")
        .join(again, [*_GROUP, "epoch", "from_offset"], "left")
    )
    since = (F.unix_micros("from_timestamp") - F.unix_micros("before.from_timestamp")) / 1000
    nobody = F.array().cast("array<string>")
    lost = lost_between(coverage, F.coalesce("before.from_offset", F.lit(-1)), F.col("from_offset"))
    return as_table(
        with_missing(rows, lost).withColumns(
            {
                "at": F.col("from_timestamp"),
                "since_previous_ms": since.cast("bigint"),
                "stored_again": F.coalesce("times", F.lit(0)),
                "coordinator_change": _coordinator_change(),
                **{change: F.coalesce(change, nobody) for change in CHURN},
            }
        ),
        "rebalances",
    )


def _led_to(changes: DataFrame, epochs: DataFrame) -> DataFrame:
    """Return changes with the epoch they led to: the next, where theirs left no record."""
    key = [*_GROUP, "life"]
    shown = epochs.select(*key, "epoch").distinct()
    told = _in_lives(
        changes.select(*key, "at", F.coalesce("epoch", F.lit(0)).alias("epoch"), *_CHANGE), epochs
    )
    lost = told.join(shown, [*key, "epoch"], "left_anti")
    later = shown.withColumnRenamed("epoch", "next")
    moved = (
        lost.join(later, key)
        .where(F.col("next") > F.col("epoch"))
        .groupBy(*key, "epoch", *_CHANGE)
        .agg(F.min("next").alias("next"))
        .select(*key, F.col("next").alias("epoch"), *_CHANGE)
    )
    return told.join(shown, [*key, "epoch"], "left_semi").unionByName(moved)


def _in_lives(told: DataFrame, epochs: DataFrame) -> DataFrame:
    """Return changes in the life they led to: who leaves with a conversion is in that before."""
    first = F.min_by(F.struct("epoch", "from_timestamp"), "from_offset")
    next_life = (
        epochs.groupBy(*_GROUP, "life")
        .agg(first.alias("first"))
        .select(
            *_GROUP,
            (F.col("life") - 1).alias("life"),
            F.col("life").alias("next_life"),
            F.col("first.epoch").alias("next_epoch"),
            F.col("first.from_timestamp").alias("at"),
        )
    )
    is_converted = F.col("change").isin(LEFT, FENCED) & F.col("next_life").isNotNull()
    return told.join(next_life, [*_GROUP, "life", "at"], "left").select(
        *_GROUP,
        F.when(is_converted, F.col("next_life")).otherwise(F.col("life")).alias("life"),
        F.when(is_converted, F.col("next_epoch")).otherwise(F.col("epoch")).alias("epoch"),
        *_CHANGE,
    )


def _who(changes: DataFrame) -> DataFrame:
    """Return members by kind of change, for each epoch."""
    named = (
        F.sort_array(F.collect_set(F.when(F.col("change") == change, F.col("member_id")))).alias(
            change
        )
        for change in CHURN
    )
    return changes.groupBy(*_GROUP, "life", "epoch").agg(*named)


def _stored_again(generations: DataFrame) -> DataFrame:
    """Return how often a generation was stored once more than it was made.

    Returns:
        `coordinator_partition`, `group_id`, `epoch`, `from_offset` (of its first record), `times`,
        `by_another` (boolean: a later coordinator did).
    """
    order = Window.partitionBy("partition", "key.group").orderBy("offset")
    before = F.lag(F.struct("value.generation", "is_tombstone")).over(order)
    same = F.coalesce(
        ~F.col("before.is_tombstone") & (F.col("before.generation") == F.col("value.generation")),
        F.lit(col=False),
    )
    so_far = order.rowsBetween(Window.unboundedPreceding, Window.currentRow)
    return (
        generations.withColumn("before", before)
        .withColumn("run", F.sum(F.when(same, 0).otherwise(1)).over(so_far))
        .where(~F.col("is_tombstone"))
        .groupBy(
            F.col("partition").alias("coordinator_partition"),
            F.col("key.group").alias("group_id"),
            F.col("value.generation").alias("epoch"),
            "run",
        )
        .agg(
            F.min("offset").alias("from_offset"),
            (F.count(F.lit(1)) - 1).cast("int").alias("times"),
            (F.count_distinct("leader_epoch") > 1).alias("by_another"),
        )
        .where("times > 0")
        .drop("run")
    )


def _coordinator_change() -> Column:
    """Return what the coordinator before had stored, where another wrote the epoch's record."""
    changed = F.col("leader_epoch") != F.col("before.leader_epoch")
    lost = F.coalesce("missing_before", F.lit(0)) > 0
    what = (
        F.when(F.col("group_type") != CLASSIC, "kept")
        .when(lost, "unsynced")
        .when(F.col("before.state") == _EMPTY, "empty")
        .otherwise("synced")
    )
    again = F.coalesce("by_another", F.lit(col=False))
    return F.when(again, "stored_again").when(F.coalesce(changed, F.lit(col=False)), what)
