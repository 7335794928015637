"""What another retention would cost, or would have cost: the table `retention_what_if`."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import TYPE_CHECKING

from pyspark.sql import functions as F

from analytics.evaluate.expiration.expiry import as_time
from analytics.evaluate.expiration.exposures import exposures
from analytics.evaluate.expiration.offset_expiration import BLOCKED
from analytics.evaluate.expiration.offset_log import OffsetLog
from analytics.evaluate.expiration.retention import Retention, of_partition, with_retention
from analytics.replay.contract import as_table
from analytics.replay.history.offset_lives import KEY
from analytics.replay.lives import GROUP_KEY

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

MINUTE_MS = 60_000
WOULD_LOSE_NOW, WOULD_HAVE_LOST, SAFE, CANNOT_TELL = (
    "would_lose_now",
    "would_have_lost",
    "safe",
    "cannot_tell",
)


def retention_what_if(  # noqa: PLR0913 - each is a fact of its own
    expiration: DataFrame,
    removals: DataFrame,
    groups: DataFrame,
    log: OffsetLog,
    *,
    retention: Retention,
    minutes: Collection[int],
    as_of_ms: int,
    complete_from: Mapping[int, int],
) -> DataFrame:
    """Return the table `retention_what_if`.

    Args:
        expiration: The table `offset_expiration` at the instant.
        removals: The table `offset_removals` up to it.
        groups: The state table `groups`: which of them the dump may not know all of.
        log: The log up to the instant.
        retention: What is in force.
        minutes: The retentions to try.
        as_of_ms: The instant, in epoch milliseconds.
        complete_from: By partition of `__consumer_offsets`, the offset from which on no record was
            compacted away or is missing, where that is not its beginning.
    """
    stretches = exposures(log, removals, as_of_ms).where(
        F.col("to_offset") > F.coalesce(of_partition(complete_from), F.lit(0))
    )
    blocked = expiration.where(F.col("status") == BLOCKED).select(
        "group_id", "topic", "partition", F.lit(col=True).alias("is_blocked")
    )
    tried = F.explode(F.array(*(F.lit(each).cast("bigint") for each in sorted(set(minutes)))))
    held = (
        with_retention(stretches, retention)
        .withColumnRenamed("retention_ms", "retention_in_force_ms")
        .join(blocked, ["group_id", "topic", "partition"], "left")
        .withColumn("retention_minutes", tried)
        .withColumn("due_ms", _due(log))
    )
    # A stretch that begins after the instant is empty: it begins with what makes it due.
    lost = F.col("to_ms") >= F.greatest("due_ms", "from_ms")
    if log.era.due == "after":
        lost = F.col("to_ms") > F.greatest("due_ms", "from_ms")
    held = held.withColumn("is_lost", F.coalesce(lost, F.lit(col=False)))
    by_offset = held.groupBy("retention_minutes", *KEY).agg(
        F.max("is_lost").alias("lost_once"),
        F.max(F.col("is_lost") & F.col("is_now") & F.col("is_blocked").isNull()).alias("lost_now"),
        F.min(F.when(F.col("is_lost"), F.greatest("due_ms", "from_ms"))).alias("first_ms"),
        F.max(F.col("to_ms") - F.col("base_ms")).alias("longest_idle_ms"),
    )
    by_group = by_offset.groupBy("retention_minutes", *GROUP_KEY).agg(
        F.sum(F.col("lost_now").cast("bigint")).alias("lost_now"),
        F.sum(F.col("lost_once").cast("bigint")).alias("lost_once"),
        F.min("first_ms").alias("first_ms"),
        F.max("longest_idle_ms").alias("longest_idle_ms"),
    )
    every = _every_group(expiration, by_group, minutes)
    rows = (
        every.join(
            by_group.drop("coordinator_partition"), ["retention_minutes", "group_id"], "left"
        )
        .join(_history(log, as_of_ms, complete_from), "coordinator_partition", "left")
        .join(groups.select("group_id", "complete", "missing"), "group_id", "left")
        .fillna(0, ["offsets", "lost_now", "lost_once"])
        .withColumn("first_lost_at", as_time(F.col("first_ms")))
    )
    return as_table(_with_verdict(rows), "retention_what_if")


def _due(log: OffsetLog) -> Column:
    """Return when a stretch would have made its offset due.

    Before 2.1 the broker's retention went into the expire time when the offset was committed: one
    that is as far from the commit as the retention in force is taken to be from there.
    """
    by_retention = F.col("base_ms") + F.col("retention_minutes") * MINUTE_MS
    own = F.col("expire_ms")
    if log.era.per_offset:
        own = F.when(own - F.col("base_ms") != F.col("retention_in_force_ms"), own)
    return F.coalesce(own, by_retention)


def _every_group(expiration: DataFrame, by_group: DataFrame, minutes: Collection[int]) -> DataFrame:
    """Return each retention and group with offsets, now or once, and how many it has now."""
    now = expiration.groupBy("coordinator_partition", "group_id").agg(
        F.count(F.lit(1)).alias("offsets")
    )
    once = by_group.select("coordinator_partition", "group_id").distinct()
    tried = F.explode(F.array(*(F.lit(each).cast("bigint") for each in sorted(set(minutes)))))
    return now.join(once, ["coordinator_partition", "group_id"], "full").withColumn(
        "retention_minutes", tried
    )


def _history(log: OffsetLog, as_of_ms: int, complete_from: Mapping[int, int]) -> DataFrame:
    """Return how far back the log of each coordinator's partition tells all: `history_ms`.

    Null where it begins with the partition.
    """
    commits = log.decoded["offset_commit"].select("partition", "offset", "timestamp")
    since = F.min(F.when(F.col("offset") >= F.col("complete_from"), F.col("timestamp")))
    return (
        commits.withColumn("coordinator_partition", F.col("partition"))
        .withColumn("complete_from", F.coalesce(of_partition(complete_from), F.lit(0)))
        .where("complete_from > 0")
        .groupBy("coordinator_partition")
        .agg(F.unix_millis(since).alias("since_ms"))
        .select(
            "coordinator_partition",
            (F.lit(as_of_ms) - F.coalesce("since_ms", F.lit(as_of_ms))).alias("history_ms"),
        )
    )


def _with_verdict(rows: DataFrame) -> DataFrame:
    too_short = F.col("history_ms") < F.col("retention_minutes") * MINUTE_MS
    incomplete = ~F.coalesce("complete", F.lit(col=True))
    return rows.withColumn(
        "verdict",
        F.when(F.col("lost_now") > 0, WOULD_LOSE_NOW)
        .when(F.col("lost_once") > 0, WOULD_HAVE_LOST)
        .when(too_short | incomplete, CANNOT_TELL)
        .otherwise(SAFE),
    ).withColumn(
        "reason",
        F.when(F.col("verdict") != CANNOT_TELL, F.lit(None).cast("string"))
        .when(incomplete, F.col("missing"))
        .otherwise("what was committed before was compacted away, and may have been idle as long"),
    )
