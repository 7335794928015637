"""When each committed offset expires, and what keeps it: the table `offset_expiration`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from pyspark.sql import functions as F

from analytics.evaluate.expiration.expiry import (
    MAY_NOT_BE_KEPT,
    as_time,
    has_expire_time,
    is_due,
    with_expiry,
)
from analytics.evaluate.expiration.offset_log import OffsetLog, with_transactions
from analytics.evaluate.expiration.retention import Retention, of_partition, with_retention
from analytics.replay.contract import as_table
from analytics.replay.history.offset_conditions import (
    AT_THE_END,
    STREAMS_GROUP,
    UNSUBSCRIBED,
    with_condition,
)
from analytics.replay.history.offset_lives import KEY
from analytics.replay.log.latest import records_at
from schemas.expiration_rules import rule_name

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

PROTECTED, SCHEDULED, DUE, OVERDUE, BLOCKED, UNTOLD = (
    "protected",
    "scheduled",
    "due",
    "overdue",
    "blocked",
    "cannot_tell",
)
CANNOT_TELL = "cannot tell: "
"""How the note of a row begins whose status is `UNTOLD`."""


def offset_expiration(
    committed: DataFrame,
    log: OffsetLog,
    retention: Retention,
    as_of_ms: int,
    *,
    groups: DataFrame | None = None,
    instants: Mapping[int, int] | None = None,
    ends: DataFrame | None = None,
) -> DataFrame:
    """Return the table `offset_expiration`.

    Args:
        committed: The state table `committed_offsets` at the instant.
        log: The log up to the instant.
        retention: Of the coordinators.
        as_of_ms: The instant, in epoch milliseconds.
        groups: The state table `groups`, which says what is not known of whom; None: all is known.
        instants: That of partitions of `__consumer_offsets` that have another one.
        ends: `topic`, `partition`, `log_start_offset`, `log_end_offset` of data partitions, as far
            as they are known; None where none is.
    """
    placed = _with_missing(in_force(committed, log), committed, groups, log)
    # Computed here: one expression of all that follows would be thousands of lines of code.
    known = with_expiry(with_retention(placed, retention), log.era).localCheckpoint()
    now = F.coalesce(of_partition(instants or {}), F.lit(as_of_ms))
    judged = known.withColumn("now_ms", now).withColumn("is_due", is_due(F.col("now_ms")))
    blocked = F.col("is_due") & F.col("blocking_producers").isNotNull()
    if not log.era.pending_transaction_keeps:
        blocked = F.lit(col=False)
    judged = judged.withColumn("is_blocked", blocked)
    # A commit that came, or that a marker made effective, late was not there to be removed before.
    in_force_since = F.coalesce("effective_at", "written_at")
    from_then = F.greatest(F.col("expires_ms"), F.unix_millis(in_force_since))
    next_cleanup = F.when(~F.col("is_kept"), from_then + F.col("check_interval_ms"))
    judged = judged.withColumn("cleanup_ms", next_cleanup)
    judged = judged.withColumn("note", _note(streams_keep=log.replay.streams_readiness_is_recorded))
    is_told = ~F.coalesce(F.startswith("note", F.lit(CANNOT_TELL)), F.lit(col=False))
    judged = judged.withColumn("is_told", is_told)
    status = (
        F.when(~F.col("is_told"), UNTOLD)
        .when(F.col("is_kept"), PROTECTED)
        .when(~F.col("is_due"), SCHEDULED)
        .when(F.col("is_blocked"), BLOCKED)
        .when(F.col("now_ms") > F.col("cleanup_ms"), OVERDUE)
        .otherwise(DUE)
    )
    rows = (
        judged.withColumn("status", status)
        .withColumn(
            "rule", F.when(F.col("is_blocked"), rule_name("pending")).otherwise(F.col("rule"))
        )
        .withColumn("rules", F.lit(log.era.name))
        .withColumn("base_timestamp", F.when(F.col("is_told"), as_time(F.col("base_ms"))))
        .withColumn("expires_at", F.when(F.col("is_told"), as_time(F.col("expires_ms"))))
        .withColumn("next_cleanup_at", F.when(F.col("is_told"), as_time(F.col("cleanup_ms"))))
        .withColumn("blocked_by", F.when(F.col("is_told") & F.col("is_blocked"), _producers()))
    )
    return as_table(_with_ends(rows, ends), "offset_expiration")


def in_force(committed: DataFrame, log: OffsetLog) -> DataFrame:
    """Return committed offsets with what their expiry rests on.

    Returns:
        `KEY`, `committed_offset`, `commit_ms`, `expire_ms`, `written_at` (the time of the
        record), `effective_at` (of a commit in a transaction the time of its marker, else null),
        and what `with_condition` and `with_transactions` add.
    """
    places = committed.select("coordinator_partition", "record_offset")
    value = F.col("value")
    live = records_at(log.decoded["offset_commit"], places).select(
        "coordinator_partition",
        F.col("key.group").alias("group_id"),
        F.col("key.topic").alias("topic"),
        F.col("key.partition").alias("partition"),
        "record_offset",
        value["offset"].alias("committed_offset"),
        value["commit_timestamp"].alias("commit_ms"),
        value["expire_timestamp"].alias("expire_ms"),
        F.col("timestamp").alias("written_at"),
        F.lit(AT_THE_END).alias("place"),
    )
    markers = log.pending.where(F.col("outcome") == "COMMIT").select(
        *KEY, "record_offset", F.col("until_at").alias("effective_at")
    )
    live = live.join(markers, [*KEY, "record_offset"], "left")
    placed = with_condition(live, log.groups, log.protections, log.protects)
    return with_transactions(placed, log.pending)


def _with_missing(
    placed: DataFrame, committed: DataFrame, groups: DataFrame | None, log: OffsetLog
) -> DataFrame:
    """Add `missing`: what the dump lacks that the expiry of an offset rests on; null where none."""
    own = committed.select(*KEY, F.when(~F.col("complete"), F.col("missing")).alias("own_missing"))
    placed = placed.join(own, list(KEY), "left")
    missing = F.col("own_missing")
    # Where the era heeds nothing of the group, nothing rests on what is not known of it.
    if groups is not None and log.era.heeds:
        of_group = groups.select(
            "group_id", F.when(~F.col("complete"), F.col("missing")).alias("group_missing")
        )
        placed = placed.join(F.broadcast(of_group), "group_id", "left")
        missing = F.coalesce(missing, F.col("group_missing"))
    return placed.withColumn("missing", missing).drop("own_missing", "group_missing")


def _producers() -> Column:
    listed = F.array_join(F.col("blocking_producers").cast("array<string>"), ", ")
    return F.concat(F.lit("open transaction of producer "), listed)


def _note(*, streams_keep: bool) -> Column:
    """Return what a row cannot show by itself; null where there is nothing to add.

    Args:
        streams_keep: Whether a streams group with members surely keeps offsets of its topics.
    """
    may_rebalance = F.col("condition") == UNSUBSCRIBED
    is_over = F.col("is_due") & ~F.col("is_kept")
    due = as_time(F.col("expires_ms"))
    own = F.when(has_expire_time(), F.col("expire_ms"))
    otherwise = F.coalesce(own, F.col("commit_ms") + F.col("retention_ms"))
    rests_on_heartbeat = (F.col("condition") == STREAMS_GROUP) & F.col("is_kept")
    rests_on_heartbeat &= (otherwise <= F.col("now_ms")) & F.lit(not streams_keep)
    return (
        F.when(F.col("missing").isNotNull(), F.concat(F.lit(CANNOT_TELL), "missing"))
        .when(rests_on_heartbeat, CANNOT_TELL + MAY_NOT_BE_KEPT)
        .when(is_over & may_rebalance, "kept while the group rebalances, which no record shows")
        .when(
            F.col("effective_at") > due,
            "in force only since the COMMIT marker of its transaction, after it was due",
        )
        .when(
            F.col("effective_at").isNull() & (F.col("written_at") > due),
            "due already when it was committed",
        )
    )


def _with_ends(rows: DataFrame, ends: DataFrame | None) -> DataFrame:
    """Add what a consumer would read again, or miss, that comes back without its offset."""
    committed = F.col("committed_offset")
    if ends is None:
        nothing = F.lit(None).cast("bigint")
        rows = rows.withColumn("log_start_offset", nothing).withColumn("log_end_offset", nothing)
    else:
        named = ends.select("topic", "partition", "log_start_offset", "log_end_offset")
        rows = rows.join(F.broadcast(named), ["topic", "partition"], "left")
    again = committed - F.col("log_start_offset")
    skipped = F.col("log_end_offset") - committed
    return rows.withColumn("read_again_if_earliest", _at_least_none(again)).withColumn(
        "skipped_if_latest", _at_least_none(skipped)
    )


def _at_least_none(count: Column) -> Column:
    return F.when(count < 0, 0).otherwise(count)
