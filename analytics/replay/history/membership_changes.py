"""The table `membership_changes`: who joined, left or came back, and what that gave and took.

What was written in one batch happened at once: a member that leaves one life of a group and enters
the next by a conversion did neither, and a static member whose place another id takes restarted.
Records do not tell why a member left. Only one that was away for a while, at epoch -2, and never
came back is sure to have been fenced.

The first record that compaction left of a member or of a classic group tells what was there by
then, not what happened then. Compaction takes the older records of a key first: what came after
one that is still there is whole, unless more than compaction took records.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark.sql import Window
from pyspark.sql import functions as F

from analytics.replay.contract import as_table
from analytics.replay.groups.coordinator_log import PRESENCE, SUBSCRIPTION
from analytics.replay.groups.group_records import CLASSIC, CURRENT, GROUP_KEY
from analytics.replay.history.shown_from import born_from, lost_until
from analytics.replay.log.coverage import WHOLE, Coverage

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

JOINED, LEFT, RESTARTED, FENCED = "joined", "left", "restarted", "fenced"
SUBSCRIPTION_CHANGED, ASSIGNMENT_CHANGED = "subscription_changed", "assignment_changed"
AWAY = -2
_ACTIVE = "active"
_MOMENT = (*GROUP_KEY, "batch")


def membership_changes(runs: DataFrame, epochs: DataFrame, coverage: Coverage = WHOLE) -> DataFrame:
    """Return the table `membership_changes`.

    Args:
        runs: Of `runs`, with names of topics where some are known.
        epochs: The table `group_epochs`.
        coverage: What the dump holds.
    """
    rows = _restarts(_with_before(_changes(runs, coverage), epochs, coverage))
    return as_table(
        rows.select(
            "*",
            F.col("place.offset").alias("record_offset"),
            F.col("place.timestamp").alias("at"),
            "place.position.*",
            "about.group_instance_id",
            "about.client_id",
            "about.client_host",
        ),
        "membership_changes",
    )


def _changes(runs: DataFrame, coverage: Coverage) -> DataFrame:
    """Return what happened to each member at each moment, one row a kind of change."""
    kind = F.col("kind")
    given = (kind == CURRENT) & F.coalesce(F.col("role") == _ACTIVE, F.lit(col=True))
    told = runs.where(given | kind.isin(PRESENCE, SUBSCRIPTION))
    ends = told.where(F.col("until").isNotNull())
    facts = _fact(told, "at", 1).unionByName(_fact(ends, "until", -1))
    facts = facts.withColumn("may_be_older", _may_be_older(coverage))
    of_kind = F.col("kind")
    moments = facts.groupBy(*_MOMENT, "member_id").agg(
        F.sum(F.when(of_kind == PRESENCE, F.col("delta"))).alias("presence"),
        F.max(F.when((of_kind == SUBSCRIPTION) & (F.col("delta") > 0), F.col("topic"))).alias("to"),
        F.max(F.when((of_kind == SUBSCRIPTION) & (F.col("delta") < 0), F.col("topic"))).alias(
            "from"
        ),
        _sorted(F.when((of_kind == CURRENT) & (F.col("delta") > 0), F.col("name"))).alias("came"),
        _sorted(F.when((of_kind == CURRENT) & (F.col("delta") < 0), F.col("name"))).alias("went"),
        F.min_by("place", "place.offset").alias("place"),
        F.max_by("about", "place.offset").alias("about"),
        F.max_by(F.struct("life", "family"), "place.offset").alias("in"),
        F.max_by("epoch_at", "place.offset").alias("epoch"),
        F.max("was_away").alias("was_away"),
        F.max("may_be_older").alias("before_is_compacted"),
        F.max("since").alias("since"),
    )
    gained, lost = F.array_except("came", "went"), F.array_except("went", "came")
    return (
        moments.select(
            "*",
            F.col("in.life").alias("life"),
            F.col("in.family").alias("group_type"),
            gained.alias("gained"),
            lost.alias("lost"),
        )
        .withColumn("change", F.explode(_words()))
        .withColumn("gained", _unless_subscription("gained"))
        .withColumn("lost", _unless_subscription("lost"))
    )


def _fact(runs: DataFrame, place: str, delta: int) -> DataFrame:
    name = F.concat_ws(
        "-", F.coalesce("topic", "topic_id", "subtopology_id"), F.col("partition").cast("string")
    )
    return runs.select(
        *GROUP_KEY,
        f"{place}.batch",
        "member_id",
        "kind",
        "topic",
        name.alias("name"),
        F.lit(delta).alias("delta"),
        F.struct(*(F.col(f"{place}.{each}") for each in ("offset", "timestamp", "position"))).alias(
            "place"
        ),
        "about",
        "life",
        "family",
        F.col(f"{place}.epoch_at").alias("epoch_at"),
        F.col(f"{place}.since").alias("since"),
        ((F.col("kind") == PRESENCE) & (F.col("last_epoch") == AWAY) & F.lit(delta < 0)).alias(
            "was_away"
        ),
    )


def _may_be_older(coverage: Coverage) -> Column:
    """Return whether a record that is gone may have told of it before."""
    offset, since = F.col("place.offset"), F.col("since")
    first = (F.col("delta") > 0) & since.isNull()
    lost = F.coalesce(since, F.lit(-1)) + 1 < F.least(offset, lost_until(coverage))
    return lost | (first & (offset < born_from(coverage)))


def _with_before(changes: DataFrame, epochs: DataFrame, coverage: Coverage) -> DataFrame:
    """Take what came with an epoch whose predecessor is known, or that is the first, for sure.

    A record of a member that brings an epoch stands before the epoch's own, in the same batch; had
    compaction taken an earlier one of the member, it would have taken the epoch before as well.
    Generations are stored again: only the one before tells what a generation changed.
    """
    if not (coverage.shown_from or coverage.complete_from):
        return changes
    key = (*GROUP_KEY, "life", "epoch")
    known = epochs.groupBy(*key).agg(
        F.max("from_offset").alias("begins"), F.max("missing_is_compacted").alias("is_unknown")
    )
    is_classic = F.col("group_type") == CLASSIC
    came_with_it = ~F.col("is_unknown") & (F.col("place.offset") <= F.col("begins"))
    joined = (F.col("presence") > 0) & (lost_until(coverage) == 0)
    counts = F.when(is_classic, F.col("since").isNotNull()).otherwise(joined)
    sure = F.coalesce(came_with_it & counts, F.lit(col=False))
    return changes.join(known, list(key), "left").withColumn(
        "before_is_compacted", F.col("before_is_compacted") & ~sure
    )


def _sorted(names: Column) -> Column:
    return F.array_sort(F.collect_set(names))


def _words() -> Column:
    """Return the kinds of change at a moment; conversions alone are none."""
    came, went = F.col("presence") > 0, F.col("presence") < 0
    stays = ~F.coalesce(came | went, F.lit(col=False))
    subscribed = (
        F.col("to").isNotNull() & F.col("from").isNotNull() & (F.col("to") != F.col("from"))
    )
    assigned = (F.size("gained") > 0) | (F.size("lost") > 0)
    return F.array_compact(
        F.array(
            F.when(came, JOINED).when(went & F.col("was_away"), FENCED).when(went, LEFT),
            F.when(stays & subscribed, SUBSCRIPTION_CHANGED),
            F.when(stays & assigned, ASSIGNMENT_CHANGED),
        )
    )


def _unless_subscription(name: str) -> Column:
    none = F.array().cast("array<string>")
    return F.when(F.col("change") == SUBSCRIPTION_CHANGED, none).otherwise(F.col(name))


def _restarts(changes: DataFrame) -> DataFrame:
    """Turn the leaving of a static member and the joining of its successor into one row."""
    instance = F.col("about.group_instance_id")
    of_place = Window.partitionBy(*_MOMENT, "about.group_instance_id")
    gone = F.col("change").isin(LEFT, FENCED) & instance.isNotNull()
    here = (F.col("change") == JOINED) & instance.isNotNull()
    before = F.struct("member_id", "gained", "lost", "before_is_compacted")
    paired = (
        changes.withColumn("predecessor", F.max(F.when(gone, before)).over(of_place))
        .withColumn("successor", F.max(F.when(here, F.col("member_id"))).over(of_place))
        .where(~gone | F.col("successor").isNull())
    )
    restarted = here & F.col("predecessor").isNotNull()
    had, has = F.col("predecessor.lost"), F.col("gained")
    return paired.withColumns(
        {
            "previous_member_id": F.when(restarted, F.col("predecessor.member_id")),
            "change": F.when(restarted, RESTARTED).otherwise(F.col("change")),
            "before_is_compacted": F.when(
                restarted, F.col("predecessor.before_is_compacted")
            ).otherwise(F.col("before_is_compacted")),
            "lost": F.when(restarted, F.array_except(had, has)).otherwise(F.col("lost")),
            "gained": F.when(restarted, F.array_except(has, had)).otherwise(has),
        }
    )
