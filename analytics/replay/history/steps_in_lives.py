"""To which life of its group a step belongs, and which epoch was in force when it was taken.

A life of a group id goes from the first record of a type to the group's tombstone, or to the first
record of another type; a tombstone that takes over a simple group is such a first record. Records
are written in one batch with the epoch they bring about: what makes a new epoch necessary (a
member's record, its tombstones) stands before the epoch's own record, what follows from it
(targets, current assignments) behind.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark.sql import Window
from pyspark.sql import functions as F

from analytics.replay.groups.group_records import CLASSIC, CURRENT, GROUP, GROUP_KEY, MEMBER, TARGET

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame, WindowSpec

_END = "end"


def steps_in_lives(steps: DataFrame, initial_epoch: int = 0) -> DataFrame:
    """Add to each record about a group where it belongs.

    Args:
        steps: Of `with_takeovers`.
        initial_epoch: Of a group that no record of its own tells of yet.

    Returns:
        The steps with `life` (int, from 1; 0 before the first record of a life), `starts` and
        `ends` (boolean: a life), `epoch_no` (int: the group's how-manieth epoch), `epoch_at` (int:
        generation or group epoch; both null where no record tells), `epoch_by` (int: `epoch_at`,
        else the first one known after it), `is_epoch` (boolean: begins or repeats an epoch),
        `ending` (struct `offset`, `timestamp`, `batch`: the record that ended the life, null while
        it lasts), `is_closing` (boolean: written together with that end), `about` filled in from
        the member's other records.
    """
    order = Window.partitionBy(*GROUP_KEY).orderBy("offset")
    lived = _with_lives(steps, order, initial_epoch)
    numbered = _with_epoch_numbers(lived, order)
    placed = _with_ends(numbered, Window.partitionBy(*GROUP_KEY).orderBy(F.col("offset").desc()))
    return _with_about(placed)


def _with_lives(steps: DataFrame, order: WindowSpec, initial_epoch: int) -> DataFrame:
    births = F.col("creates") & ~F.col("is_tombstone")
    removals = (F.col("role") == GROUP) & F.col("is_tombstone")
    family = F.col("family")
    takes = F.col("takes_over").isNotNull()
    begins = takes & (F.col("role") != GROUP)
    label = F.when(births | begins, family).when(removals, F.concat_ws(" ", F.lit(_END), family))
    before = F.col("label_before")
    after_end = before.isNull() | before.startswith(f"{_END} ")
    of_it = (family == CLASSIC) | (before == family)
    return (
        steps.withColumn("label", label)
        .withColumn("label_before", F.last("label", ignorenulls=True).over(_earlier(order)))
        .withColumn("starts", begins | (births & (after_end | (before != family))))
        .withColumn("ends", removals & (takes | (~after_end & of_it)))
        .withColumn("epoch", F.when(begins, initial_epoch).otherwise(F.col("epoch")))
        .withColumn("life", F.sum(F.col("starts").cast("int")).over(_up_to(order)).cast("int"))
        .drop("label", "label_before")
    )


def _with_epoch_numbers(lived: DataFrame, order: WindowSpec) -> DataFrame:
    of_group = F.col("role") == GROUP
    is_epoch = (of_group & ~F.col("is_tombstone")) | (F.col("takes_over").isNotNull() & ~of_group)
    before = F.last(F.when(F.col("is_epoch"), F.struct("life", "epoch")), ignorenulls=True)
    same = (F.col("epoch_before.life") == F.col("life")) & (
        F.col("epoch_before.epoch") == F.col("epoch")
    )
    is_new = F.col("is_epoch") & ~F.coalesce(same, F.lit(col=False))
    return (
        lived.withColumn("is_epoch", is_epoch)
        .withColumn("epoch_before", before.over(_earlier(order)))
        .withColumn("number", F.sum(is_new.cast("int")).over(_up_to(order)).cast("int"))
        .withColumn(
            "in_force",
            F.last(
                F.when(F.col("is_epoch"), F.struct("life", "number", "epoch")), ignorenulls=True
            ).over(_up_to(order)),
        )
        .drop("epoch_before")
    )


def _with_ends(numbered: DataFrame, backwards: WindowSpec) -> DataFrame:
    place = ("offset", "timestamp", "batch")
    # A life that has no end of its own ends where the next one starts.
    mark = F.when(F.col("ends"), F.struct(*place, F.col("life").alias("closes"))).when(
        F.col("starts"), F.struct(*place, (F.col("life") - 1).alias("closes"))
    )
    to_come = F.when(F.col("is_epoch"), F.struct("life", "number", "epoch", "batch"))
    marked = (
        numbered.withColumn("mark", mark)
        .withColumn("next_mark", F.last("mark", ignorenulls=True).over(_earlier(backwards)))
        .withColumn("next_epoch", F.last(to_come, ignorenulls=True).over(_earlier(backwards)))
    )
    ending = F.when(F.col("ends"), F.col("mark")).when(
        F.col("next_mark.closes") == F.col("life"), F.col("next_mark")
    )
    followed = F.col("next_epoch.life") == F.col("life")
    at_once = followed & (F.col("next_epoch.batch") == F.col("batch")) & _brings_an_epoch()
    known = F.col("in_force.life") == F.col("life")

    def of_epoch(name: str) -> Column:
        next_ = F.col(f"next_epoch.{name}")
        return F.when(at_once, next_).when(known, F.col(f"in_force.{name}")).when(followed, next_)

    return (
        marked.withColumn("ending", ending)
        .withColumn("is_closing", F.equal_null(F.col("ending.batch"), F.col("batch")))
        .withColumn("epoch_no", of_epoch("number"))
        .withColumn("epoch_at", F.when(at_once | known, of_epoch("epoch")))
        .withColumn("epoch_by", of_epoch("epoch"))
        .drop("mark", "next_mark", "next_epoch", "in_force", "number")
    )


def _brings_an_epoch() -> Column:
    leaves = F.col("is_tombstone") & F.col("role").isin(CURRENT, TARGET)
    return (F.col("role") == MEMBER) | leaves


def _with_about(placed: DataFrame) -> DataFrame:
    member = Window.partitionBy(*GROUP_KEY, "member_id")
    known = F.last("about", ignorenulls=True).over(_up_to(member.orderBy("offset")))
    # A record that was written again later may be all that compaction left of the member.
    any_ = F.first("about", ignorenulls=True).over(member)
    return placed.withColumn("about", F.coalesce(known, any_))


def _earlier(order: WindowSpec) -> WindowSpec:
    return order.rowsBetween(Window.unboundedPreceding, -1)


def _up_to(order: WindowSpec) -> WindowSpec:
    return order.rowsBetween(Window.unboundedPreceding, Window.currentRow)
