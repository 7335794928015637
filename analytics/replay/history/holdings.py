"""What members held, from when to when: partitions, tasks, a subscription, their very presence.

Every record is a snapshot of something: a classic group's of all its members, a current assignment
of what one member has. What the next snapshot of the same thing no longer holds ended there. So all
of it is one problem: runs of snapshots that hold the same item.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark.sql import Window
from pyspark.sql import functions as F

from analytics.replay.groups.coordinator_log import ASSIGNOR, PENDING, PRESENCE, SUBSCRIPTION
from analytics.replay.groups.group_records import CLASSIC, CURRENT, GROUP, GROUP_KEY, MEMBER, TARGET

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

ITEM = ("member_id", "kind", "role", "subtopology_id", "topic", "topic_id", "partition")
_KINDS_OF = {
    PRESENCE: (PRESENCE,),
    SUBSCRIPTION: (SUBSCRIPTION, ASSIGNOR),
    CURRENT: (CURRENT, PENDING),
    TARGET: (TARGET,),
}
_PLACE = (
    "offset",
    "timestamp",
    "batch",
    "epoch_no",
    "epoch_at",
    "epoch_by",
    "is_closing",
    "position",
    "since",
)


def holdings(steps: DataFrame) -> DataFrame:
    """Return one row for each snapshot and each item it holds.

    Args:
        steps: Of `steps_in_lives`.

    Returns:
        `coordinator_partition`, `group_id`, `family`, `life`, the columns of `ITEM` (`topic` is the
        words of a subscription, or the name of an assignor), `epoch` (int: as the record names it),
        `about`, `at` (struct of the record's place: `offset`, `timestamp`, `batch`, `epoch_no`,
        `epoch_at`, `epoch_by`, `is_closing`, `position`; and `since`: offset of the snapshot of the
        same thing before it, null where this life has none), `until` (struct, as `at`: where the
        run ends that the row closes; null while it lasts), `starts` and `closes` (boolean: begins,
        or is the last of, a run).
    """
    held = _items(_snapshots(steps))
    item = Window.partitionBy(*GROUP_KEY, "life", *ITEM).orderBy("number")
    before, after = F.lag("number").over(item), F.lead("number").over(item)
    return (
        held.withColumn("before", before)
        .withColumn("after", after)
        .withColumn("starts", F.col("before").isNull() | (F.col("before") < F.col("number") - 1))
        .withColumn("closes", F.col("after").isNull() | (F.col("after") > F.col("number") + 1))
        .withColumn("until", F.when(F.col("closes"), F.col("next")))
        .drop("before", "after", "number", "next")
    )


def runs(held: DataFrame) -> DataFrame:
    """Return one row for each run: what was held from `at` to `until` (null: still)."""
    item = Window.partitionBy(*GROUP_KEY, "life", *ITEM).orderBy("at.offset")
    ends = F.col("starts") | F.col("closes")
    last = F.struct("until", F.col("epoch").alias("last_epoch"))
    return (
        held.where(ends)
        .withColumn("end", F.when(F.col("closes"), last).otherwise(F.lead(last).over(item)))
        .where("starts")
        .drop("starts", "closes", "until")
        .select("*", "end.until", "end.last_epoch")
        .drop("end")
    )


def _snapshots(steps: DataFrame) -> DataFrame:
    """Number the snapshots of each thing, each with the place of the next one."""
    strand = F.explode(
        F.when(F.col("role") == GROUP, F.array(F.lit(CLASSIC)))
        .when(F.col("role") == TARGET, F.array(F.lit(TARGET)))
        .when(F.col("role") == CURRENT, _strands_of_current())
        .otherwise(_strands_of_member())
    )
    of_classic = (F.col("family") == CLASSIC) & (F.col("role") == GROUP)
    snapshots = steps.where(of_classic | F.col("role").isin(MEMBER, CURRENT, TARGET)).select(
        *GROUP_KEY,
        "family",
        "life",
        "epoch",
        "about",
        "member_id",
        "items",
        "ending",
        strand.alias("strand"),
        *_PLACE[:-1],
    )
    order = Window.partitionBy(*GROUP_KEY, "life", "strand", "member_id").orderBy("offset")
    placed = snapshots.withColumn("since", F.lag("offset").over(order)).withColumn(
        "at", F.struct(*_PLACE)
    )
    following = F.lead("at").over(order)
    return placed.withColumn("number", F.row_number().over(order)).withColumn(
        "next", F.coalesce(following, _end_of_life())
    )


def _end_of_life() -> Column:
    """Return the place where the life ends, for what was never told to have ended before."""
    here = F.col("ending.offset") > F.col("at.offset")
    nowhere = F.lit(None).cast(
        "struct<leader_epoch:int,copy:string,segment:string,batch_position:bigint>"
    )
    return F.when(
        here,
        F.struct(
            F.col("ending.offset").alias("offset"),
            F.col("ending.timestamp").alias("timestamp"),
            F.col("ending.batch").alias("batch"),
            *(F.col(f"at.{name}").alias(name) for name in ("epoch_no", "epoch_at", "epoch_by")),
            F.lit(col=True).alias("is_closing"),
            nowhere.alias("position"),
            F.col("at.offset").alias("since"),
        ),
    )


def _strands_of_current() -> Column:
    # Without its current assignment a member is still there, with nothing.
    removed = F.array(F.lit(CURRENT))
    return F.when(F.col("is_tombstone"), removed).otherwise(_strands(PRESENCE, CURRENT))


def _strands_of_member() -> Column:
    told = _strands(PRESENCE, SUBSCRIPTION)
    return F.when(F.col("is_tombstone"), _strands(PRESENCE, SUBSCRIPTION, CURRENT)).otherwise(told)


def _strands(*names: str) -> Column:
    return F.array(*(F.lit(name) for name in names))


def _items(snapshots: DataFrame) -> DataFrame:
    chosen = F.lit(col=False)
    for strand, kinds in _KINDS_OF.items():
        chosen = chosen | ((F.col("strand") == strand) & F.col("item.kind").isin(*kinds))
    kept = ("family", "life", "epoch", "at", "next", "number")
    return (
        snapshots.select(
            *GROUP_KEY, *kept, "strand", "about", "member_id", F.explode("items").alias("item")
        )
        .where((F.col("strand") == CLASSIC) | chosen)
        .select(
            *GROUP_KEY,
            *kept,
            F.coalesce("item.member_id", "member_id").alias("member_id"),
            "item.kind",
            "item.role",
            "item.subtopology_id",
            "item.topic",
            "item.topic_id",
            F.coalesce("item.about", "about").alias("about"),
            F.explode("item.partitions").alias("partition"),
        )
    )
