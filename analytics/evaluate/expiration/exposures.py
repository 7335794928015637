"""The stretches in which nothing kept a committed offset but its retention.

What the retention counts from does not depend on how long it is, so these stretches tell for every
retention alike when an offset would have gone. What the cleanup did remove is taken to have stayed
until the next commit: another retention would have kept it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import polars as pl

from analytics.evaluate.expiration.expiry import has_expire_time
from analytics.evaluate.expiration.offset_log import OffsetLog
from analytics.replay.groups.group_records import GROUP_KEY
from analytics.replay.log.record_position import AFTER_ALL, BEFORE_ALL
from analytics.replay.offsets.commit_rows import KEY
from analytics.replay.offsets.effective_commits import COMMITTED, REMOVED
from analytics.replay.removals.removal_causes import EXPIRATION
from analytics.replay.spans.conditions import EMPTY, SIMPLE, condition_of
from analytics.replay.spans.intervals import SPAN, TIME, joined_spans, overlap, until_next

if TYPE_CHECKING:
    from collections.abc import Sequence

TOPIC_KEY: Final = (*GROUP_KEY, "topic")
_OF_TOPIC, _OF_OFFSET = "of_topic", "of_offset"
"""Numbers of a `TOPIC_KEY` and of a `KEY`: many rows are looked up by them."""


def exposures(log: OffsetLog, removals: pl.DataFrame, now_ms: pl.Expr) -> pl.DataFrame:
    """Return every stretch in which an offset was exposed to its retention.

    Args:
        log: The log up to the instant.
        removals: `offset_removals`: what is an expiration among them ends no offset here.
        now_ms: The instant of a row's `coordinator_partition`, in epoch milliseconds.

    Returns:
        `KEY`, `of_offset` (a number for each), `commit_position` (where the commit took effect),
        `from_ms`, `to_ms` (bigint),
        `to_offset` (offset in the coordinator's partition at which it ended), `base_ms` (what the
        retention counts from), `expire_ms` (the offset's own expire time; null where it has none)
        and `is_now` (boolean: it goes on at the instant, and the offset is still there).
    """
    lives = _lives(log, removals)
    numbers = lives.group_by(_OF_TOPIC).agg(pl.col(TOPIC_KEY).first())
    topics = numbers.select(TOPIC_KEY)
    counted = [name for name, base in log.era.counts_from.items() if base != "none"]
    kinds = _kinds(log, topics).filter(pl.col("condition").is_in(counted))
    spans = overlap(_free_spans(log, topics), kinds, GROUP_KEY)
    spans = spans.join(numbers, on=list(TOPIC_KEY))
    spans = spans.select(_OF_TOPIC, *SPAN, "condition", "state_ms")
    base = pl.when(pl.col("condition") == EMPTY).then(pl.coalesce("state_ms", "commit_ms"))
    is_open = pl.col("to_offset") == AFTER_ALL
    return overlap(lives, spans, [_OF_TOPIC]).select(
        *KEY,
        _OF_OFFSET,
        "commit_position",
        pl.coalesce(pl.col("from_at").dt.epoch("ms"), "commit_ms").alias("from_ms"),
        pl.when(is_open).then(now_ms).otherwise(pl.col("to_at").dt.epoch("ms")).alias("to_ms"),
        "to_offset",
        pl.coalesce(base, "commit_ms").alias("base_ms"),
        pl.when(has_expire_time()).then("expire_ms").alias("expire_ms"),
        (is_open & ~pl.col("was_removed")).alias("is_now"),
    )


def _lives(log: OffsetLog, removals: pl.DataFrame) -> pl.DataFrame:
    """Return commits until the next one, or until something but the cleanup removed them."""
    expired = removals.filter(pl.col("cause") == EXPIRATION).select(
        "coordinator_partition",
        pl.col("record_offset").alias("expired_at"),
        pl.lit(value=True).alias("was_removed"),
    )
    is_tombstone = pl.col("event") == REMOVED
    # What happened: for a tombstone itself, for a commit what ended it.
    place = pl.when(is_tombstone).then("position").otherwise("next_position")
    events = (
        log.events.select(
            *KEY, "event", "position", "at", "commit_ms", "expire_ms", place.alias("expired_at")
        )
        .join(expired, on=["coordinator_partition", "expired_at"], how="left")
        .with_columns(pl.col("was_removed").fill_null(value=False))
        .filter(~(is_tombstone & pl.col("was_removed")))
        .with_columns(pl.col("position").alias("from_offset"), pl.col("at").alias("from_at"))
    )
    return (
        until_next(events, KEY)
        .filter(pl.col("event") == COMMITTED)
        .rename({"position": "commit_position"})
        .with_columns(_number(TOPIC_KEY).alias(_OF_TOPIC), _number(KEY).alias(_OF_OFFSET))
        .drop("event", "at", "expired_at")
    )


def _number(key: Sequence[str]) -> pl.Expr:
    """Return a number for each key, of rows in the order of their keys."""
    is_another = pl.any_horizontal(pl.col(name) != pl.col(name).shift(1) for name in key)
    return is_another.fill_null(value=True).cum_sum()


def _free_spans(log: OffsetLog, topics: pl.DataFrame) -> pl.DataFrame:
    """Return from where to where nothing kept the offsets of a group's topic."""
    heeded = log.protections.filter(pl.col("why").is_in(log.era.heeds)).drop("why")
    of_all = heeded.filter(pl.col("topic").is_null()).drop("topic").join(topics, on=list(GROUP_KEY))
    of_one = heeded.join(topics, on=list(TOPIC_KEY), how="semi")
    columns = [*TOPIC_KEY, *SPAN]
    kept = joined_spans(pl.concat([of_one.select(columns), of_all.select(columns)]), TOPIC_KEY)
    after = kept.select(
        *TOPIC_KEY, pl.col("to_offset").alias("from_offset"), pl.col("to_at").alias("from_at")
    )
    ends = kept.select(
        *TOPIC_KEY, pl.col("from_offset").alias("to_offset"), pl.col("from_at").alias("to_at")
    )
    # Of each topic a stretch before the first, and one behind each.
    free = pl.concat([_from_the_start(topics), after]).sort(*TOPIC_KEY, "from_offset")
    nth = pl.int_range(pl.len()).over(TOPIC_KEY).alias("nth")
    free = free.with_columns(nth).join(ends.with_columns(nth), on=[*TOPIC_KEY, "nth"], how="left")
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
        .select(*GROUP_KEY, "condition", "state_ms", *SPAN)
    )
    kinds = joined_spans(told, (*GROUP_KEY, "condition", "state_ms"))
    first = (
        log.groups.sort("from_offset")
        .group_by(GROUP_KEY)
        .agg(
            pl.col("from_offset").first().alias("to_offset"),
            pl.col("from_at").first().alias("to_at"),
        )
    )
    nameless = (
        _from_the_start(topics.select(GROUP_KEY).unique())
        .join(first, on=list(GROUP_KEY), how="left")
        .with_columns(
            pl.col("to_offset").fill_null(AFTER_ALL),
            pl.lit(SIMPLE).alias("condition"),
            pl.lit(None, pl.Int64).alias("state_ms"),
        )
    )
    return pl.concat([kinds, nameless.select(kinds.columns)])


def _from_the_start(names: pl.DataFrame) -> pl.DataFrame:
    return names.with_columns(
        pl.lit(BEFORE_ALL, pl.Int64).alias("from_offset"), pl.lit(None, TIME).alias("from_at")
    )
