"""What another retention would cost, or would have cost: the table `retention_what_if`."""

from __future__ import annotations

from collections.abc import Collection
from typing import TYPE_CHECKING

from pyspark.sql import functions as F

from analytics.evaluate.expiration.expiry import MAY_NOT_BE_KEPT, as_time
from analytics.evaluate.expiration.exposures import exposures
from analytics.evaluate.expiration.observed_history import ObservedHistory
from analytics.evaluate.expiration.offset_expiration import BLOCKED, UNTOLD
from analytics.evaluate.expiration.offset_log import OffsetLog
from analytics.evaluate.expiration.retention import Retention, with_retention
from analytics.replay.contract import as_table
from analytics.replay.groups.group_records import GROUP_KEY
from analytics.replay.history.offset_lives import KEY

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

MINUTE_MS = 60_000
WOULD_LOSE_NOW, WOULD_HAVE_LOST, NOT_LOST_IN_PERIOD, SAFE, CANNOT_TELL = (
    "would_lose_now",
    "would_have_lost",
    "not_lost_in_period",
    "safe",
    "cannot_tell",
)
_NOTHING_OBSERVED = "no time was observed"
_TOO_SHORT = "the period observed is shorter than the retention"
_NOTHING_KEEPS = "nothing keeps its offsets at present but the retention"
_NO_OFFSETS = "it has no offsets at present"


def retention_what_if(
    expiration: DataFrame,
    removals: DataFrame,
    groups: DataFrame,
    log: OffsetLog,
    observed: ObservedHistory,
    *,
    retention: Retention,
    minutes: Collection[int],
) -> DataFrame:
    """Return the table `retention_what_if`.

    Args:
        expiration: The table `offset_expiration` at the instant.
        removals: The table `offset_removals` up to it.
        groups: The state table `groups`: which of them the dump may not know all of.
        log: The log up to the instant.
        observed: From where on history is whole, up to the instant.
        retention: What is in force.
        minutes: The retentions to try.
    """
    tried = F.explode(F.array(*(F.lit(each).cast("bigint") for each in sorted(set(minutes)))))
    stretches = exposures(log, removals, observed.now_ms).where(observed.is_known())
    held = with_retention(stretches, retention).withColumn("retention_minutes", tried)
    by_group = _by_group(_by_offset(held, expiration, log))
    rows = (
        _every_group(expiration, by_group)
        .withColumn("retention_minutes", tried)
        .join(by_group.drop("coordinator_partition"), ["retention_minutes", "group_id"], "left")
        .join(observed.periods(log.decoded), list(GROUP_KEY), "left")
        .join(groups.select("group_id", "group_type", "complete", "missing"), "group_id", "left")
        .fillna(0, ["offsets", "untold", "lost_now", "lost_once", "exposed_now"])
        .withColumn("first_lost_at", as_time(F.col("first_ms")))
        .withColumn("next_expires_at", as_time(F.col("next_ms")))
        .withColumn("observed_from", as_time(F.col("observed_from_ms")))
        .withColumn("observed_to", as_time(F.col("observed_to_ms")))
    )
    return as_table(_with_verdict(rows, log), "retention_what_if")


def _by_offset(held: DataFrame, expiration: DataFrame, log: OffsetLog) -> DataFrame:
    """Return what each retention tried would have done to each offset."""
    blocked = expiration.where(F.col("status") == BLOCKED).select(
        "group_id", "topic", "partition", F.lit(col=True).alias("is_blocked")
    )
    held = (
        held.withColumnRenamed("retention_ms", "retention_in_force_ms")
        .join(blocked, ["group_id", "topic", "partition"], "left")
        .withColumn("due_ms", _due(log))
    )
    # A stretch that begins after the instant is empty: it begins with what makes it due.
    lost = F.col("to_ms") >= F.greatest("due_ms", "from_ms")
    if log.era.due == "after":
        lost = F.col("to_ms") > F.greatest("due_ms", "from_ms")
    held = held.withColumn("is_lost", F.coalesce(lost, F.lit(col=False)))
    goes_on = F.col("is_now") & ~F.col("is_lost")
    return held.groupBy("retention_minutes", *KEY).agg(
        F.max("is_lost").alias("lost_once"),
        F.max(F.col("is_lost") & F.col("is_now") & F.col("is_blocked").isNull()).alias("lost_now"),
        F.max("is_now").alias("exposed_now"),
        F.min(F.when(F.col("is_lost"), F.greatest("due_ms", "from_ms"))).alias("first_ms"),
        F.min(F.when(goes_on, F.greatest("due_ms", "from_ms"))).alias("next_ms"),
        F.max(F.col("to_ms") - F.col("base_ms")).alias("longest_idle_ms"),
    )


def _by_group(by_offset: DataFrame) -> DataFrame:
    return by_offset.groupBy("retention_minutes", *GROUP_KEY).agg(
        *(
            F.sum(F.col(name).cast("bigint")).alias(name)
            for name in ("lost_now", "lost_once", "exposed_now")
        ),
        F.min("first_ms").alias("first_ms"),
        F.min("next_ms").alias("next_ms"),
        F.max("longest_idle_ms").alias("longest_idle_ms"),
    )


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


def _every_group(expiration: DataFrame, by_group: DataFrame) -> DataFrame:
    """Return each group with offsets, now or once; how many it has now, and why not all is told."""
    is_untold = F.col("status") == UNTOLD
    now = expiration.groupBy(*GROUP_KEY).agg(
        F.count(F.lit(1)).alias("offsets"),
        F.sum(is_untold.cast("bigint")).alias("untold"),
        F.min(F.when(is_untold, F.col("note"))).alias("why_untold"),
    )
    return now.join(by_group.select(*GROUP_KEY).distinct(), list(GROUP_KEY), "full")


def _with_verdict(rows: DataFrame, log: OffsetLog) -> DataFrame:
    """Add `verdict` and `reason`.

    A retention is called safe only where an idle stretch as long could have been seen, none was,
    and members keep all offsets at the instant.
    """
    period = F.col("observed_to_ms") - F.col("observed_from_ms")
    is_short = period < F.col("retention_minutes") * MINUTE_MS
    is_exposed = F.col("exposed_now") > 0
    may_lapse = (F.col("group_type") == "streams") & F.lit(
        not log.replay.streams_readiness_is_recorded
    )
    incomplete = F.when(~F.coalesce("complete", F.lit(col=True)), F.coalesce("missing", F.lit("")))
    nothing = F.concat_ws(", and ", F.lit(_NOTHING_OBSERVED), "bound")
    untold = F.coalesce(
        incomplete,
        F.when(F.col("untold") > 0, F.regexp_replace("why_untold", "^cannot tell: ", "")),
        F.when(F.coalesce(period, F.lit(0)) <= 0, nothing),
        F.when(may_lapse & ~is_short & ~is_exposed, MAY_NOT_BE_KEPT),
    )
    short = F.when(is_short, F.concat_ws(": ", F.lit(_TOO_SHORT), "bound"))
    open_ended = F.coalesce(
        short,
        F.when(is_exposed, _NOTHING_KEEPS),
        F.when(F.col("offsets") == 0, _NO_OFFSETS),
    )
    return rows.withColumn(
        "verdict",
        F.when(F.col("lost_now") > 0, WOULD_LOSE_NOW)
        .when(F.col("lost_once") > 0, WOULD_HAVE_LOST)
        .when(untold.isNotNull(), CANNOT_TELL)
        .when(open_ended.isNotNull(), NOT_LOST_IN_PERIOD)
        .otherwise(SAFE),
    ).withColumn(
        "reason",
        F.when(F.col("verdict") == CANNOT_TELL, untold).when(
            F.col("verdict") == NOT_LOST_IN_PERIOD, open_ended
        ),
    )
