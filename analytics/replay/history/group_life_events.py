"""Events of groups and their members: born, converted, each epoch, emptied, removed."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark.sql import Window
from pyspark.sql import functions as F

from analytics.replay.groups.group_records import ASSIGNMENT_EPOCH, CLASSIC, GROUP, GROUP_KEY
from analytics.replay.history.event_rows import OFFSETS, event_rows, words
from analytics.replay.history.membership_changes import (
    ASSIGNMENT_CHANGED,
    FENCED,
    JOINED,
    LEFT,
    RESTARTED,
    SUBSCRIPTION_CHANGED,
)
from analytics.replay.history.shown_from import born_from, lost_until
from analytics.replay.log.coverage import WHOLE, Coverage

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

OF_CHANGE = {
    JOINED: "member_joined",
    LEFT: "member_left",
    RESTARTED: "member_restarted",
    FENCED: "member_fenced",
    SUBSCRIPTION_CHANGED: "subscription_changed",
    ASSIGNMENT_CHANGED: "assignment",
}
_FEW = 12


def group_life_events(steps: DataFrame, epochs: DataFrame, coverage: Coverage = WHOLE) -> DataFrame:
    """Return created, converted, generation, epoch, assignment, emptied and deleted.

    A life whose first record compaction or a loss may have taken was not created where the first
    one that is left lies: there is no such event.

    Args:
        steps: Of `steps_in_lives`.
        epochs: The table `group_epochs`.
        coverage: What the dump holds.
    """
    order = Window.partitionBy(*GROUP_KEY).orderBy("offset")
    removal = (F.col("role") == GROUP) & F.col("is_tombstone")
    assigned = (F.col("role") == ASSIGNMENT_EPOCH) & ~F.col("is_tombstone")
    ends = F.when(F.col("ends"), F.struct("batch", "family"))
    told = steps.withColumn(
        "ended",
        F.last(ends, ignorenulls=True).over(order.rowsBetween(Window.unboundedPreceding, -1)),
    ).withColumn(
        "reborn",
        F.lead(F.when(F.col("starts"), F.col("batch"))).over(order),
    )
    facts = epochs.select(
        *GROUP_KEY,
        F.col("from_offset").alias("offset"),
        F.struct(
            "group_type",
            "epoch",
            "member_count",
            "members_joined",
            "members_left",
            "partitions_assigned",
            "partitions_moved",
            "missing_before",
            "missing_is_compacted",
        ).alias("of_epoch"),
    )
    lives = epochs.groupBy(*GROUP_KEY, "life").agg(
        F.min_by("missing_is_compacted", "from_offset").alias("begins_unseen")
    )
    rows = (
        told.where(F.col("starts") | F.col("is_epoch") | removal | assigned)
        .join(facts, [*GROUP_KEY, "offset"], "left")
        .join(lives, [*GROUP_KEY, "life"], "left")
        .withColumn("is_birth", _is_birth(coverage))
        .withColumn("record_offset", F.col("offset"))
        .select("*", "position.*")
        .withColumn("happened", F.explode(_happened(removal, assigned)))
    )
    return event_rows(
        rows,
        OFFSETS,
        at="timestamp",
        event=F.col("happened.event"),
        subject=F.col("happened.subject"),
        detail=F.col("happened.detail"),
    )


def _is_birth(coverage: Coverage) -> Column:
    """Return whether the first record of a life that is left is sure to be the first of all.

    Generations are stored again, the first as well; behind its own tombstone none is missing.
    """
    follows = F.equal_null(F.col("ended.family"), F.lit(CLASSIC)) & (lost_until(coverage) == 0)
    seen = F.when(F.col("family") == CLASSIC, follows).otherwise(~F.col("begins_unseen"))
    return F.coalesce(seen, F.lit(col=False)) | (F.col("offset") >= born_from(coverage))


def _happened(removal: Column, assigned: Column) -> Column:
    family, epoch = F.col("family"), F.col("of_epoch")
    taken = F.col("takes_over")
    converts = F.col("starts") & (taken.isNotNull() | (F.col("ended.batch") == F.col("batch")))
    # The end of one life and the beginning of the next in one batch are a conversion.
    gone = removal & ~F.equal_null(F.col("reborn"), F.col("batch"))
    word = F.when(family == CLASSIC, "generation").otherwise("epoch")
    counted = words(
        epoch["member_count"],
        " members",
        F.concat(F.lit(", joined "), epoch["members_joined"].cast("string")),
        F.concat(F.lit(", left "), epoch["members_left"].cast("string")),
        F.concat(F.lit(", partitions "), epoch["partitions_assigned"].cast("string")),
        F.concat(F.lit(", moved "), epoch["partitions_moved"].cast("string")),
        F.when(
            epoch["missing_before"] > 0,
            F.concat(
                F.lit("; "),
                epoch["missing_before"].cast("string"),
                F.lit(" before it left no record"),
            ),
        ),
        F.when(epoch["missing_is_compacted"], F.lit("; what was before it is compacted")),
    )
    born = F.col("starts") & ~F.coalesce(converts, F.lit(col=False)) & F.col("is_birth")
    emptied = (epoch["member_count"] == 0) & (epoch["members_left"] > 0)
    return F.array_compact(
        F.array(
            _one(
                converts,
                F.lit("converted"),
                words(F.coalesce(taken, "ended.family"), " to ", family),
            ),
            _one(born, F.lit("created"), family),
            _one(epoch.isNotNull(), word, counted, epoch["epoch"]),
            _one(assigned, F.lit("assignment"), words("targets of epoch ", F.col("epoch"))),
            _one(emptied, F.lit("emptied"), F.lit("the last member left")),
            _one(gone, F.lit("deleted"), words("as a ", family, " group")),
        )
    )


def _one(when: Column, event: Column, detail: Column, subject: Column | None = None) -> Column:
    about = F.lit(None) if subject is None else subject
    return F.when(
        when,
        F.struct(
            event.alias("event"),
            about.cast("string").alias("subject"),
            detail.cast("string").alias("detail"),
        ),
    )


def member_events(changes: DataFrame) -> DataFrame:
    """Return what happened to members.

    Args:
        changes: The table `membership_changes`.
    """
    event = F.lit(None).cast("string")
    for change, name in OF_CHANGE.items():
        event = F.when(F.col("change") == change, name).otherwise(event)
    detail = F.concat_ws(
        "; ",
        F.concat(F.lit("was "), F.col("previous_member_id")),
        F.concat(F.lit("instance "), F.col("group_instance_id")),
        F.concat(F.lit("client "), F.col("client_id"), F.lit(" at "), F.col("client_host")),
        _list("gained"),
        _list("lost"),
        F.when(
            F.col("before_is_compacted"), F.lit("here or earlier: what was before is compacted")
        ),
    )
    return event_rows(
        changes, OFFSETS, at="at", event=event, subject=F.col("member_id"), detail=detail
    )


def _list(name: str) -> Column:
    """Return what is in a list: all of it, or a few and how many more."""
    size = F.size(name)
    few = F.array_join(F.slice(name, 1, _FEW), ", ")
    rest = F.when(
        size > _FEW, F.concat(F.lit(" and "), (size - _FEW).cast("string"), F.lit(" more"))
    )
    return F.when(size > 0, F.concat(F.lit(f"{name} "), few, F.coalesce(rest, F.lit(""))))
