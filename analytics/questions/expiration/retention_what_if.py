"""What another retention would cost, or would have cost: the table `retention_what_if`."""

from __future__ import annotations

from collections.abc import Collection
from typing import Final

import polars as pl

from analytics.contracts import AFTER_ALL, BEFORE_ALL
from analytics.questions.expiration.offset_expiration import (
    BLOCKED,
    MAY_NOT_BE_KEPT,
    UNTOLD,
    as_time,
    has_expire_time,
)
from analytics.questions.expiration.offset_log import ObservedHistory, OffsetLog
from analytics.questions.expiration.retention_settings import Retention, with_retention
from analytics.replay.groups.group_records import GROUP_KEY
from analytics.replay.log.rules import ReplayRules
from analytics.replay.log.spans import SPAN, TIME, joined_spans, overlap, with_next
from analytics.replay.offsets.commit_rows import GROUP, KEY, PLACE, TOPIC
from analytics.replay.offsets.effective_commits import COMMITTED, REMOVED
from analytics.replay.removals.removal_causes import EXPIRATION
from analytics.replay.removals.removed_offsets import EMPTY, SIMPLE, condition_of

# The stretches in which nothing kept a committed offset but its retention.
#
# What the retention counts from does not depend on how long it is, so these stretches tell for
# every retention alike when an offset would have gone. What the cleanup did remove is taken to
# have stayed until the next commit: another retention would have kept it.


def exposures(log: OffsetLog, removals: pl.DataFrame, now_ms: pl.Expr) -> pl.DataFrame:
    """Return every stretch in which an offset was exposed to its retention.

    Args:
        log: The log up to the instant.
        removals: `offset_removals`: what is an expiration among them ends no offset here.
        now_ms: The instant of a row's `coordinator_partition`, in epoch milliseconds.

    Returns:
        `KEY`, `GROUP` and `PLACE` of commits, `commit_position` (where the commit took effect),
        `from_ms`, `to_ms` (bigint),
        `to_offset` (offset in the coordinator's partition at which it ended), `base_ms` (what the
        retention counts from), `expire_ms` (the offset's own expire time; null where it has none),
        `is_now` (boolean: it goes on at the instant, and the offset is still there) and
        `has_known_end` (boolean). What ended it with a time beyond the instant, which is not
        believed, did so by the instant at the latest: the end is that.
    """
    lives = _lives(log, removals)
    topics = lives.select(GROUP, TOPIC).filter(_is_another(TOPIC))
    counted = [name for name, base in log.era.counts_from.items() if base != "none"]
    kinds = _kinds(log, topics).filter(pl.col("condition").is_in(counted))
    spans = overlap(_free_spans(log, topics), kinds, [GROUP]).select(
        TOPIC, *SPAN, pl.when(pl.col("condition") == EMPTY).then("state_ms").alias("since_ms")
    )
    is_open = pl.col("to_offset") == AFTER_ALL
    ended_ms = pl.col("to_at").dt.epoch("ms")
    is_unbelieved = (~is_open & (ended_ms > now_ms)).fill_null(value=False)
    return overlap(lives, spans, [TOPIC]).select(
        *(*KEY, GROUP, PLACE),
        "commit_position",
        pl.coalesce(pl.col("from_at").dt.epoch("ms"), "commit_ms").alias("from_ms"),
        pl.when(is_open | is_unbelieved).then(now_ms).otherwise(ended_ms).alias("to_ms"),
        "to_offset",
        pl.coalesce("since_ms", "commit_ms").alias("base_ms"),
        pl.when(has_expire_time()).then("expire_ms").alias("expire_ms"),
        (is_open & ~pl.col("was_removed")).alias("is_now"),
        (~is_unbelieved).alias("has_known_end"),
    )


def _lives(log: OffsetLog, removals: pl.DataFrame) -> pl.DataFrame:
    """Return commits until the next one, or until something but the cleanup removed them."""
    is_tombstone = pl.col("event") == REMOVED
    events = log.events.select(
        *(*KEY, GROUP, TOPIC, PLACE),
        *("event", "commit_ms", "expire_ms", pl.col("position").alias("commit_position")),
        *(pl.col("position").alias("from_offset"), pl.col("at").alias("from_at")),
        # What happened: for a tombstone itself, for a commit what ended it.
        pl.when(is_tombstone).then("position").otherwise("next_position").alias("expired_at"),
    )
    expired = removals.filter(pl.col("cause") == EXPIRATION).select(
        "coordinator_partition",
        pl.col("record_offset").alias("expired_at"),
        pl.lit(value=True).alias("was_removed"),
    )
    if expired.is_empty():
        events = events.with_columns(pl.lit(value=False).alias("was_removed"))
    else:
        told = events.join(
            expired, on=["coordinator_partition", "expired_at"], how="left", maintain_order="left"
        ).with_columns(pl.col("was_removed").fill_null(value=False))
        events = told.filter(~(is_tombstone & pl.col("was_removed")))
    return (
        with_next(events, [PLACE]).filter(pl.col("event") == COMMITTED).drop("event", "expired_at")
    )


def _free_spans(log: OffsetLog, topics: pl.DataFrame) -> pl.DataFrame:
    """Return from where to where nothing kept the offsets of a group's topic."""
    heeded = log.protections.filter(pl.col("why").is_in(log.era.heeds)).drop("why")
    of_all = heeded.filter(pl.col(TOPIC).is_null()).drop(TOPIC).join(topics, on=GROUP)
    of_one = heeded.join(topics, on=TOPIC, how="semi")
    columns = [GROUP, TOPIC, *SPAN]
    spans = pl.concat([of_one.select(columns), of_all.select(columns)])
    kept = joined_spans(spans, (GROUP, TOPIC))
    after = kept.select(
        GROUP, TOPIC, pl.col("to_offset").alias("from_offset"), pl.col("to_at").alias("from_at")
    )
    ends = kept.select(
        TOPIC, pl.col("from_offset").alias("to_offset"), pl.col("from_at").alias("to_at")
    )
    # Of each topic a stretch before the first, and one behind each.
    free = pl.concat([_from_the_start(topics), after]).sort(TOPIC, "from_offset")
    nth = pl.int_range(pl.len()).over(TOPIC).alias("nth")
    free = free.with_columns(nth).join(ends.with_columns(nth), on=[TOPIC, "nth"], how="left")
    return (
        free.with_columns(pl.col("to_offset").fill_null(AFTER_ALL))
        .filter(pl.col("from_offset") < pl.col("to_offset"))
        .select(columns)
    )


def _kinds(log: OffsetLog, topics: pl.DataFrame) -> pl.DataFrame:
    """Return from where to where a group was of one kind, with `condition` and `state_ms`.

    Records of a group with members follow each other without changing what its expiry rests on.
    Before its first record it is a name that offsets were committed under.
    """
    condition = condition_of().fill_null(SIMPLE)
    state = pl.when(pl.col("condition") == EMPTY).then("state_ms")
    told = (
        log.groups.with_columns(condition.alias("condition"))
        .with_columns(state.alias("state_ms"))
        .select(GROUP, "condition", "state_ms", *SPAN)
    )
    kinds = joined_spans(told, (GROUP, "condition", "state_ms"))
    first = log.groups.filter(_is_another(GROUP)).select(
        GROUP, pl.col("from_offset").alias("to_offset"), pl.col("from_at").alias("to_at")
    )
    nameless = (
        _from_the_start(topics.select(GROUP).filter(_is_another(GROUP)))
        .join(first, on=GROUP, how="left")
        .with_columns(
            pl.col("to_offset").fill_null(AFTER_ALL),
            pl.lit(SIMPLE).alias("condition"),
            pl.lit(None, pl.Int64).alias("state_ms"),
        )
    )
    return pl.concat([kinds, nameless.select(kinds.columns)])


def _is_another(number: str) -> pl.Expr:
    """Return whether a row is the first with its number, of rows in such an order."""
    return pl.col(number).ne_missing(pl.col(number).shift(1))


def _from_the_start(names: pl.DataFrame) -> pl.DataFrame:
    return names.with_columns(
        pl.lit(BEFORE_ALL, pl.Int64).alias("from_offset"), pl.lit(None, TIME).alias("from_at")
    )


MINUTE_MS: Final = 60_000
WOULD_LOSE_NOW, WOULD_HAVE_LOST, NOT_LOST_IN_PERIOD, SAFE, NOT_TOLD = (
    "would_lose_now",
    "would_have_lost",
    "not_lost_in_period",
    "safe",
    "cannot_tell",
)
_NOTHING_OBSERVED: Final = "no time was observed"
_TOO_SHORT: Final = "the period observed is shorter than the retention"
_UNBELIEVED: Final = "the time of a record that ended an idle stretch is not believed"
_NOTHING_KEEPS: Final = "nothing keeps its offsets at present but the retention"
_NO_OFFSETS: Final = "it has no offsets at present"
_TRIED: Final = "retention_minutes"


def retention_costs(
    log: OffsetLog,
    expiration: pl.DataFrame,
    removals: pl.DataFrame,
    observed: ObservedHistory,
    *,
    retention: Retention,
    minutes: Collection[int],
) -> pl.DataFrame:
    """Return what each retention tried would have done to each group.

    Args:
        log: The log up to the instant, of whole groups.
        expiration: The table `offset_expiration` at the instant, of these groups at least.
        removals: The table `offset_removals` up to it, of these groups at least.
        observed: From where on history is whole, up to the instant.
        retention: What is in force.
        minutes: The retentions to try.

    Returns:
        `retention_minutes`, `GROUP_KEY`, the numbers of offsets `lost_now`, `lost_once`,
        `lost_perhaps` (of stretches whose end is not known) and `exposed_now`, and in milliseconds
        `first_ms` (when the first would have gone), `next_ms` (when the next will go) and
        `longest_idle_ms`.
    """
    held = exposures(log, removals, observed.now_ms).filter(observed.is_known())
    if log.era.per_offset:
        held = with_retention(held, retention).rename({"retention_ms": "in_force_ms"})
    held = _with_blocked(held, expiration.filter(pl.col("status") == BLOCKED))
    return pl.concat(
        _by_group(held, log, each).with_columns(pl.lit(each, pl.Int64).alias(_TRIED))
        for each in sorted(set(minutes))
    )


def offsets_now(expiration: pl.DataFrame) -> pl.DataFrame:
    """Return by group how many offsets it has now, and why not all is told of them.

    Args:
        expiration: The table `offset_expiration` at the instant, of whole groups.

    Returns:
        `GROUP_KEY`, `offsets`, `untold` (how many) and `why_untold` (null where all is told).
    """
    is_untold = pl.col("status") == UNTOLD
    why = pl.when(is_untold).then("note").alias("why_untold")
    told = expiration.select(*GROUP_KEY, is_untold.alias("untold"), why)
    return told.group_by(GROUP_KEY).agg(
        pl.len().cast(pl.Int64).alias("offsets"),
        pl.col("untold").sum().cast(pl.Int64),
        pl.col("why_untold").min(),
    )


def retention_what_if(
    now: pl.DataFrame,
    costs: pl.DataFrame,
    periods: pl.DataFrame,
    groups: pl.DataFrame,
    *,
    replay: ReplayRules,
    minutes: Collection[int],
) -> pl.DataFrame:
    """Return the rows of the table `retention_what_if`, and more columns.

    Args:
        now: Of `offsets_now`, of all groups.
        costs: Of `retention_costs`, of all groups.
        periods: Of `ObservedHistory.periods`, of all groups.
        groups: The state table `groups`: which of them the dump may not know all of.
        replay: How the release replays.
        minutes: The retentions to try.
    """
    tried = pl.DataFrame({_TRIED: sorted(set(minutes))}, schema={_TRIED: pl.Int64})
    known = groups.select("group_id", "group_type", "complete", "missing")
    key = list(GROUP_KEY)
    counts = ["offsets", "untold", "lost_now", "lost_once", "lost_perhaps", "exposed_now"]
    times = {"first_lost_at": "first_ms", "next_expires_at": "next_ms"}
    times |= {"observed_from": "observed_from_ms", "observed_to": "observed_to_ms"}
    rows = (
        now.join(costs.select(GROUP_KEY).unique(), on=key, how="full", coalesce=True)
        .join(tried, how="cross")
        .join(costs.drop("coordinator_partition"), on=[_TRIED, "group_id"], how="left")
        .join(periods, on=key, how="left")
        .join(known, on="group_id", how="left")
        .with_columns(pl.col(counts).fill_null(0))
        .with_columns(as_time(pl.col(each)).alias(name) for name, each in times.items())
    )
    return _with_verdict(rows, replay)


def _with_blocked(held: pl.DataFrame, blocked: pl.DataFrame) -> pl.DataFrame:
    """Add `is_blocked`: true for these rows of `offset_expiration`, else null."""
    if blocked.is_empty():
        return held.with_columns(pl.lit(None, pl.Boolean).alias("is_blocked"))
    key = ["group_id", "topic", "partition"]
    told = blocked.select(key).unique().with_columns(pl.lit(value=True).alias("is_blocked"))
    return held.join(told, on=key, how="left")


def _by_group(held: pl.DataFrame, log: OffsetLog, minutes: int) -> pl.DataFrame:
    """Return what a retention would have done to each group."""
    # A stretch that begins after the instant is empty: it begins with what makes it due.
    lapses = pl.max_horizontal("due_ms", "from_ms")
    ends = pl.col("to_ms")
    lost = ends > lapses if log.era.due == "after" else ends >= lapses
    is_lost, is_now = pl.col("is_lost"), pl.col("is_now")
    is_known = pl.col("has_known_end")
    lost = lost.fill_null(value=False)
    told = held.with_columns(_due(log, minutes).alias("due_ms")).with_columns(
        (lost & is_known).alias("is_lost"),
        (lost & ~is_known).alias("may_be_lost"),
        lapses.alias("lapses_ms"),
    )
    is_first = pl.when(is_lost).then(PLACE).is_first_distinct()
    counts = {
        # One stretch of an offset at most goes on at the instant.
        "lost_now": is_lost & is_now & pl.col("is_blocked").is_null(),
        "lost_once": is_lost & is_first,
        "lost_perhaps": pl.col("may_be_lost"),
        "exposed_now": is_now,
    }
    told = told.with_columns(is_so.alias(name) for name, is_so in counts.items())
    return (
        told.group_by(GROUP)
        .agg(
            pl.col(GROUP_KEY).first(),
            pl.col(*counts).sum().cast(pl.Int64),
            pl.when(is_lost).then("lapses_ms").min().alias("first_ms"),
            pl.when(is_now & ~is_lost).then("lapses_ms").min().alias("next_ms"),
            pl.when(is_known).then(ends - pl.col("base_ms")).max().alias("longest_idle_ms"),
        )
        .drop(GROUP)
    )


def _due(log: OffsetLog, minutes: int) -> pl.Expr:
    """Return when a stretch would have made its offset due.

    Before 2.1 the broker's retention went into the expire time when the offset was committed: one
    that is as far from the commit as the retention in force is taken to be from there.
    """
    by_retention = pl.col("base_ms") + minutes * MINUTE_MS
    own = pl.col("expire_ms")
    if log.era.per_offset:
        own = pl.when(own - pl.col("base_ms") != pl.col("in_force_ms")).then(own)
    return pl.coalesce(own, by_retention)


def _with_verdict(rows: pl.DataFrame, replay: ReplayRules) -> pl.DataFrame:
    """Add `verdict` and `reason`.

    A retention is called safe only where an idle stretch as long could have been seen, none was,
    no history was taken, and members keep all offsets at the instant.
    """
    period = pl.col("observed_to_ms") - pl.col("observed_from_ms")
    is_short = period < pl.col(_TRIED) * MINUTE_MS
    is_exposed = pl.col("exposed_now") > 0
    may_lapse = (pl.col("group_type") == "streams") & (not replay.streams_readiness_is_recorded)
    incomplete = pl.when(~pl.col("complete").fill_null(value=True)).then(
        pl.col("missing").fill_null("")
    )
    nothing = pl.concat_str(
        pl.lit(_NOTHING_OBSERVED), "bound", separator=", and ", ignore_nulls=True
    )
    untold = pl.coalesce(
        incomplete,
        "unmeasured",
        pl.when(pl.col("untold") > 0).then("why_untold"),
        pl.when(pl.col("lost_perhaps") > 0).then(pl.lit(_UNBELIEVED)),
        pl.when(period.fill_null(0) <= 0).then(nothing),
        pl.when(may_lapse & ~is_short & ~is_exposed).then(pl.lit(MAY_NOT_BE_KEPT)),
    )
    short = pl.concat_str(pl.lit(_TOO_SHORT), "bound", separator=": ", ignore_nulls=True)
    open_ended = pl.coalesce(
        pl.when(is_short).then(short),
        pl.when(is_exposed).then(pl.lit(_NOTHING_KEEPS)),
        pl.when(pl.col("offsets") == 0).then(pl.lit(_NO_OFFSETS)),
        # What compaction or a loss took may have been a stretch as long.
        pl.col("bound"),
    )
    verdict = (
        pl.when(pl.col("lost_now") > 0)
        .then(pl.lit(WOULD_LOSE_NOW))
        .when(pl.col("unmeasured").is_not_null())
        .then(pl.lit(NOT_TOLD))
        .when(pl.col("lost_once") > 0)
        .then(pl.lit(WOULD_HAVE_LOST))
        .when(untold.is_not_null())
        .then(pl.lit(NOT_TOLD))
        .when(open_ended.is_not_null())
        .then(pl.lit(NOT_LOST_IN_PERIOD))
        .otherwise(pl.lit(SAFE))
    )
    reason = (
        pl.when(pl.col("verdict") == NOT_TOLD)
        .then(untold)
        .when(pl.col("verdict") == NOT_LOST_IN_PERIOD)
        .then(open_ended)
    )
    return rows.with_columns(verdict.alias("verdict")).with_columns(reason.alias("reason"))
