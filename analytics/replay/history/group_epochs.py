"""The table `group_epochs`: each generation or group epoch, how it ended up, what it changed."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark.sql import Window
from pyspark.sql import functions as F

from analytics.replay.contract import as_table
from analytics.replay.groups.group_records import (
    ASSIGNMENT_EPOCH,
    CLASSIC,
    CONSUMER,
    CONSUMER_PROTOCOL,
    GROUP_KEY,
    REMOVED_ASSIGNMENT_EPOCH,
    SHARE,
    STREAMS,
    TOPOLOGY,
)
from analytics.replay.history.assignor_votes import with_preferred_assignor
from analytics.replay.history.epoch_counts import COUNTS, EPOCH_KEY, epoch_counts
from analytics.replay.history.shown_from import born_from, shown_from
from analytics.replay.log.coverage import WHOLE, Coverage
from analytics.replay.log.rules import ReplayRules

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame, WindowSpec

_CARRIED = ("assignment_epoch", "topology_epoch")


def group_epochs(
    steps: DataFrame, runs: DataFrame, rules: ReplayRules, coverage: Coverage = WHOLE
) -> DataFrame:
    """Return the table `group_epochs`.

    Args:
        steps: Of `steps_in_lives`.
        runs: Of `runs`.
        rules: Of the release.
        coverage: What the dump holds.
    """
    told = _told(steps).unionByName(epoch_counts(steps, runs), allowMissingColumns=True)
    names = [name for name in told.columns if name not in EPOCH_KEY]
    epochs = told.groupBy(*EPOCH_KEY).agg(
        *(F.first(name, ignorenulls=True).alias(name) for name in names)
    )
    epochs = with_preferred_assignor(epochs, runs)
    life = Window.partitionBy(*GROUP_KEY, "life").orderBy("epoch_no")
    summed = _with_totals(epochs, life).where("began is not null")
    compared = _with_missing(summed.withColumn("next_one", F.lead("began").over(life)), coverage)
    return as_table(_rows(compared, rules), "group_epochs")


def _told(steps: DataFrame) -> DataFrame:
    """Return what the records of groups say of each epoch."""
    own = F.col("is_epoch")
    role, offset = F.col("role"), F.col("offset")

    def last(column: Column, when: Column) -> Column:
        return F.max_by(column, F.when(when, offset))

    began = F.struct("offset", "timestamp", "batch", "position.leader_epoch")
    assigned = F.when(F.col("is_tombstone"), REMOVED_ASSIGNMENT_EPOCH).otherwise(F.col("epoch"))
    topology = (role == TOPOLOGY) & ~F.col("is_tombstone")
    return (
        steps.where("epoch_no is not null")
        .groupBy(*EPOCH_KEY)
        .agg(
            F.max("family").alias("group_type"),
            F.max(F.when(own, F.col("epoch"))).alias("epoch"),
            F.min_by(began, F.when(own, offset)).alias("began"),
            last(F.col("leader"), own).alias("leader"),
            last(F.col("protocol"), own).alias("protocol"),
            last(F.col("protocol_type"), own).alias("protocol_type"),
            last(F.col("unread"), own).alias("unread"),
            last(F.col("validated_epoch"), own).alias("validated_epoch"),
            last(assigned, (role == ASSIGNMENT_EPOCH) & ~F.col("is_closing")).alias(
                "assignment_epoch"
            ),
            last(F.col("epoch"), topology).alias("topology_epoch"),
            F.max("ending").alias("ending"),
        )
    )


def _with_totals(epochs: DataFrame, life: WindowSpec) -> DataFrame:
    """Sum the changes up, and carry along what an epoch does not tell anew."""
    so_far = life.rowsBetween(Window.unboundedPreceding, Window.currentRow)
    changed = {name: F.coalesce(F.col(name), F.lit(0)) for name in COUNTS}
    totals = {
        "members": F.sum(changed["joined"] - changed["left"]).over(so_far),
        "given": F.sum(changed["gained"] - changed["given_up"]).over(so_far),
    }
    carried = {name: F.last(name, ignorenulls=True).over(so_far) for name in _CARRIED}
    return epochs.withColumns(totals | carried | changed)


def _with_missing(epochs: DataFrame, coverage: Coverage) -> DataFrame:
    """Find out how many numbers lie between each epoch and the one before, and why.

    Returns:
        The epochs with `missing_before`, `missing_is_compacted` and `compares` (boolean: the epoch
        before is at hand, or there was none).
    """
    group = Window.partitionBy(*GROUP_KEY).orderBy("epoch_no")
    before = F.lag(F.struct("life", "epoch", F.col("began.offset").alias("at"))).over(group)
    follows = F.equal_null(F.col("before.life"), F.col("life"))
    # A converted group goes on counting; of one born anew only the classic ones begin at zero.
    is_converted = F.col("before.life").isNotNull() & F.equal_null(
        F.col("began.batch"), F.col("ended_before.batch")
    )
    first = F.when(F.col("group_type") == CLASSIC, F.lit(0)).otherwise(F.col("epoch") - 1)
    since = F.when(follows | is_converted, F.col("before.epoch")).otherwise(first)
    skipped = F.greatest(F.col("epoch") - since - 1, F.lit(0))
    # Whatever lay before the first record that is certain to be shown may be lost. Not where the
    # cleaner took it: it leaves the last record that tells an epoch, so that none followed that.
    may_lack = F.coalesce("before.at", F.lit(-1)) + 1 < shown_from(coverage)
    may_lack &= F.col("began.offset") < born_from(coverage)
    lacks = may_lack & ((skipped > 0) | (~follows & ~is_converted & (F.col("epoch") > 1)))
    ended = F.lag("ending").over(group)
    return (
        epochs.withColumn("before", before)
        .withColumn("ended_before", ended)
        .withColumn("missing_is_compacted", F.coalesce(lacks, F.lit(col=False)))
        .withColumn("missing_before", F.when(~F.col("missing_is_compacted"), skipped))
        .withColumn("compares", ~F.col("missing_is_compacted"))
    )


def _rows(epochs: DataFrame, rules: ReplayRules) -> DataFrame:
    is_classic = F.col("group_type") == CLASSIC
    assignment_epoch = F.when(
        ~is_classic, F.coalesce("assignment_epoch", F.lit(rules.initial_epoch))
    )
    # What members of other protocols are given is theirs to read.
    are_consumers = F.equal_null(F.col("protocol_type"), F.lit(CONSUMER_PROTOCOL))
    readable = ~is_classic | (are_consumers & (F.coalesce("unread", F.lit(0)) == 0))
    compared = F.col("compares")
    life = Window.partitionBy(*GROUP_KEY, "life").orderBy("epoch_no")
    # Nothing moved that was not read before.
    was_readable = F.coalesce(F.lag(readable | (F.col("members") == 0)).over(life), F.lit(col=True))
    return (
        epochs.withColumn("assignment_epoch", assignment_epoch)
        .withColumn("member_count", F.col("members"))
        .withColumns(
            {
                "state": _state(rules),
                "from_offset": F.col("began.offset"),
                "from_timestamp": F.col("began.timestamp"),
                "leader_epoch": F.col("began.leader_epoch"),
                "protocol_type": F.when(is_classic, F.col("protocol_type")).otherwise(
                    F.col("group_type")
                ),
                "to_offset": F.coalesce("next_one.offset", "ending.offset"),
                "to_timestamp": F.coalesce("next_one.timestamp", "ending.timestamp"),
                "protocol": _protocol(rules),
                "members_joined": F.when(compared, F.col("joined")),
                "members_left": F.when(compared, F.col("left")),
                "partitions_assigned": F.when(readable, F.col("given")),
                "partitions_moved": F.when(readable & was_readable & compared, F.col("moved")),
            }
        )
    )


def _state(rules: ReplayRules) -> Column:
    family = F.col("group_type")
    validated = F.equal_null(F.col("topology_epoch"), F.col("validated_epoch"))
    is_ready = (
        validated & F.col("topology_epoch").isNotNull() & F.lit(rules.streams_readiness_is_recorded)
    )
    return (
        F.when(F.col("members") == 0, "Empty")
        .when(family.isin(CLASSIC, SHARE), "Stable")
        .when((family == STREAMS) & ~is_ready, "NotReady")
        .when(F.col("epoch") > F.col("assignment_epoch"), "Assigning")
        .when(F.col("ready") < F.col("members"), "Reconciling")
        .otherwise("Stable")
    )


def _protocol(rules: ReplayRules) -> Column:
    family = F.col("group_type")
    return (
        F.when(family == CLASSIC, F.col("protocol"))
        .when(family == CONSUMER, F.coalesce("assignor", F.lit(rules.default_consumer_assignor)))
        .when(family == SHARE, F.lit(rules.share_assignor))
    )
