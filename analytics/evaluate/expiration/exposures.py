"""The stretches in which nothing kept a committed offset but its retention.

What the retention counts from does not depend on how long it is, so these stretches tell for every
retention alike when an offset would have gone. What the cleanup did remove is taken to have stayed
until the next commit: another retention would have kept it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark.sql import Window
from pyspark.sql import functions as F

from analytics.evaluate.expiration.expiry import has_expire_time
from analytics.evaluate.expiration.offset_log import OffsetLog
from analytics.replay.groups.group_records import GROUP_KEY
from analytics.replay.history.group_spans import FOREVER, SPAN, joined_spans
from analytics.replay.history.offset_conditions import EMPTY, SIMPLE, condition_of
from analytics.replay.history.offset_lives import COMMITTED, KEY, REMOVED
from analytics.replay.history.removal_causes import EXPIRATION
from analytics.replay.log.latest import NEVER

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

TOPIC_KEY = (*GROUP_KEY, "topic")


def exposures(log: OffsetLog, removals: DataFrame, now_ms: Column) -> DataFrame:
    """Return every stretch in which an offset was exposed to its retention.

    Args:
        log: The log up to the instant.
        removals: `offset_removals`: what is an expiration among them ends no offset here.
        now_ms: The instant of a row's `coordinator_partition`, in epoch milliseconds.

    Returns:
        `KEY`, `commit_position` (where the commit took effect), `from_ms`, `to_ms` (bigint),
        `to_offset` (offset in the coordinator's partition at which it ended), `base_ms` (what the
        retention counts from), `expire_ms` (the offset's own expire time; null where it has none)
        and `is_now` (boolean: it goes on at the instant, and the offset is still there).
    """
    lives = _lives(log, removals)
    topics = lives.select(*TOPIC_KEY).distinct().localCheckpoint()
    free = _free_spans(log, topics)
    counted = [name for name, base in log.era.counts_from.items() if base != "none"]
    kinds = _with_nameless(_kinds(log), topics).where(F.col("condition").isin(*counted))
    spans = _overlap(free, kinds, GROUP_KEY).localCheckpoint()
    pieces = _overlap(lives, spans.select(*TOPIC_KEY, *SPAN, "condition", "state_ms"), TOPIC_KEY)
    base = F.when(F.col("condition") == EMPTY, F.coalesce("state_ms", "commit_ms"))
    is_open = F.col("to_offset") == FOREVER
    is_there = is_open & ~F.col("was_removed")
    return pieces.select(
        *KEY,
        "commit_position",
        F.coalesce(F.unix_millis("from_at"), F.col("commit_ms")).alias("from_ms"),
        F.when(is_open, now_ms).otherwise(F.unix_millis("to_at")).alias("to_ms"),
        "to_offset",
        F.coalesce(base, "commit_ms").alias("base_ms"),
        F.when(has_expire_time(), F.col("expire_ms")).alias("expire_ms"),
        is_there.alias("is_now"),
    )


def _lives(log: OffsetLog, removals: DataFrame) -> DataFrame:
    """Return commits until the next one, or until something but the cleanup removed them."""
    expired = removals.where(F.col("cause") == EXPIRATION).select(
        "coordinator_partition", F.col("record_offset").alias("expired_at")
    )
    expired = F.broadcast(expired.withColumn("is_cleanup", F.lit(col=True)))
    events = log.events()
    # What happened: for a tombstone itself, for a commit what ended it.
    place = F.when(F.col("event") == REMOVED, F.col("position")).otherwise(F.col("next_position"))
    events = (
        events.withColumn("expired_at", place)
        .join(expired, ["coordinator_partition", "expired_at"], "left")
        .withColumn("was_removed", F.coalesce("is_cleanup", F.lit(col=False)))
        .where(~((F.col("event") == REMOVED) & F.col("was_removed")))
    )
    order = Window.partitionBy(*KEY).orderBy("position")
    return (
        events.withColumn("from_offset", F.col("position"))
        .withColumn("commit_position", F.col("position"))
        .withColumn("from_at", F.col("at"))
        .withColumn("to_offset", F.coalesce(F.lead("position").over(order), F.lit(FOREVER)))
        .withColumn("to_at", F.lead("at").over(order))
        .where(F.col("event") == COMMITTED)
        .select(*KEY, *SPAN, "commit_position", "commit_ms", "expire_ms", "was_removed")
    )


def _free_spans(log: OffsetLog, topics: DataFrame) -> DataFrame:
    """Return from where to where nothing kept the offsets of a group's topic."""
    heeded = log.protections.where(F.col("why").isin(*log.era.heeds)).drop("why")
    of_all = heeded.where("topic is null").drop("topic").join(topics, list(GROUP_KEY))
    of_one = heeded.join(topics, list(TOPIC_KEY), "left_semi")
    kept = joined_spans(of_one.unionByName(of_all).select(*TOPIC_KEY, *SPAN), TOPIC_KEY)
    order = Window.partitionBy(*TOPIC_KEY).orderBy("from_offset")
    after = kept.select(
        *TOPIC_KEY,
        F.col("to_offset").alias("from_offset"),
        F.coalesce(F.lead("from_offset").over(order), F.lit(FOREVER)).alias("to_offset"),
        F.col("to_at").alias("from_at"),
        F.lead("from_at").over(order).alias("to_at"),
    )
    first = kept.groupBy(*TOPIC_KEY).agg(
        F.min("from_offset").alias("to_offset"), F.min_by("from_at", "from_offset").alias("to_at")
    )
    before = topics.join(first, list(TOPIC_KEY), "left").select(
        *TOPIC_KEY,
        F.lit(NEVER).cast("bigint").alias("from_offset"),
        F.coalesce("to_offset", F.lit(FOREVER)).alias("to_offset"),
        F.lit(None).cast("timestamp").alias("from_at"),
        "to_at",
    )
    return before.unionByName(after).where(F.col("from_offset") < F.col("to_offset"))


def _kinds(log: OffsetLog) -> DataFrame:
    """Return from where to where a group was of one kind, with `condition` and `state_ms`.

    Records of a group with members follow each other without changing what its expiry rests on.
    """
    condition = F.coalesce(F.when(F.col("family").isNotNull(), condition_of()), F.lit(SIMPLE))
    state = F.when(condition == EMPTY, F.col("state_ms"))
    told = log.groups.select(
        *GROUP_KEY, *SPAN, condition.alias("condition"), state.alias("state_ms")
    )
    return joined_spans(told, (*GROUP_KEY, "condition", "state_ms"))


def _with_nameless(kinds: DataFrame, topics: DataFrame) -> DataFrame:
    """Add what groups were before their first record: names that offsets were committed under."""
    first = kinds.groupBy(*GROUP_KEY).agg(
        F.min("from_offset").alias("to_offset"), F.min_by("from_at", "from_offset").alias("to_at")
    )
    before = (
        topics.select(*GROUP_KEY)
        .distinct()
        .join(first, list(GROUP_KEY), "left")
        .select(
            *GROUP_KEY,
            F.lit(NEVER).cast("bigint").alias("from_offset"),
            F.coalesce("to_offset", F.lit(FOREVER)).alias("to_offset"),
            F.lit(None).cast("timestamp").alias("from_at"),
            "to_at",
            F.lit(SIMPLE).alias("condition"),
            F.lit(None).cast("bigint").alias("state_ms"),
        )
    )
    return kinds.unionByName(before)


def _overlap(one: DataFrame, other: DataFrame, key: tuple[str, ...]) -> DataFrame:
    """Return where spans of two frames overlap, with the columns of both."""
    renamed = other.select(
        *(
            F.col(name).alias(f"other_{name}") if name in SPAN else F.col(name)
            for name in other.columns
        )
    )
    begins_later = F.col("other_from_offset") > F.col("from_offset")
    ends_sooner = F.col("other_to_offset") < F.col("to_offset")
    both = one.join(renamed, list(key)).where(
        (F.col("other_from_offset") < F.col("to_offset"))
        & (F.col("from_offset") < F.col("other_to_offset"))
    )

    def chosen(other: Column, name: str) -> Column:
        return F.when(other, F.col(f"other_{name}")).otherwise(F.col(name)).alias(name)

    others = [name for name in both.columns if name.removeprefix("other_") not in SPAN]
    return both.select(
        *others,
        chosen(begins_later, "from_offset"),
        chosen(ends_sooner, "to_offset"),
        chosen(begins_later, "from_at"),
        chosen(ends_sooner, "to_at"),
    )
