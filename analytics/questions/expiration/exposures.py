"""The stretches in which nothing kept a committed offset but its retention.

What the retention counts from does not depend on how long it is, so these stretches tell for every
retention alike when an offset would have gone. What the cleanup did remove is taken to have stayed
until the next commit: another retention would have kept it.
"""

from __future__ import annotations

import polars as pl

from analytics.questions.expiration.expiry import has_expire_time
from analytics.questions.expiration.offset_log import OffsetLog
from analytics.replay.log.record_position import AFTER_ALL, BEFORE_ALL
from analytics.replay.offsets.commit_rows import GROUP, KEY, PLACE, TOPIC
from analytics.replay.offsets.effective_commits import COMMITTED, REMOVED
from analytics.replay.removals.removal_causes import EXPIRATION
from analytics.replay.spans.conditions import EMPTY, SIMPLE, condition_of
from analytics.replay.spans.intervals import SPAN, TIME, joined_spans, overlap, with_next


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
