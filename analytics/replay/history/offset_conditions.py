"""Under which condition a committed offset was at a place in the log: what its expiry rests on."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from pyspark.sql import functions as F

from analytics.replay.groups.group_records import (
    CLASSIC,
    CONSUMER,
    CONSUMER_PROTOCOL,
    GROUP_KEY,
    SHARE,
    STREAMS,
)
from analytics.replay.history.group_spans import (
    ACTIVE,
    FOREVER,
    OTHER_PROTOCOL,
    SUBSCRIBED,
    UNPARSEABLE,
)

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

SIMPLE, EMPTY, UNSUBSCRIBED = "simple_group", "empty_group", "unsubscribed_topic"
CONSUMER_GROUP, STREAMS_GROUP, SHARE_GROUP = "consumer_group", "streams_group", "share_group"
KEPT_BY = (SUBSCRIBED, UNPARSEABLE, OTHER_PROTOCOL, ACTIVE)
AT_THE_END = FOREVER
"""The place behind the last record."""


def with_condition(
    places: DataFrame, groups: DataFrame, protections: DataFrame, protects: Sequence[str]
) -> DataFrame:
    """Add what the group of each offset was at a place in the log.

    Args:
        places: `GROUP_KEY`, `topic` and `place` (bigint): records below it count.
        groups: `group_spans`.
        protections: `protection_spans`.
        protects: Which reasons of theirs count, what goes before first: not all releases heed all
            of them.

    Returns:
        The places with `condition` (simple_group, empty_group, unsubscribed_topic: a classic group
        of consumers with members; other_protocol_type, consumer_group, streams_group,
        share_group), `state_ms` (bigint: when a classic group took its state; null where not
        known), `member_count` (of classic groups), `group_since` (timestamp: since when the group
        was what it was), `group_from` (bigint: offset of the record that made it so; null where
        none did), `kept_by` (what keeps the offset, null where nothing does) and `kept_until`
        (timestamp: when what kept it before ended, null where nothing did).
    """
    here = (F.col("span_from") < F.col("place")) & (F.col("place") <= F.col("span_to"))
    there = places.select(*GROUP_KEY, "place").distinct()
    found = (
        there.join(_conditions(groups), list(GROUP_KEY))
        .where(here)
        .select(
            *(*GROUP_KEY, "place", "condition", "state_ms", "member_count", "group_since"),
            F.col("span_from").alias("group_from"),
        )
    )
    located = places.join(found, [*GROUP_KEY, "place"], "left").fillna(SIMPLE, ["condition"])
    listed = F.array(*(F.lit(why) for why in protects))
    counted = protections.withColumn("rank", F.array_position(listed, F.col("why")).cast("int"))
    counted = counted.where("rank > 0")
    of_topic = _kept(
        places.select(*GROUP_KEY, "topic", "place").distinct(),
        counted.where("topic is not null"),
        (*GROUP_KEY, "topic"),
        "topic",
    )
    of_all = _kept(there, counted.where("topic is null").drop("topic"), GROUP_KEY, "all")
    return (
        located.join(of_topic, [*GROUP_KEY, "topic", "place"], "left")
        .join(of_all, [*GROUP_KEY, "place"], "left")
        .withColumn("kept_by", F.get(listed, F.least("topic_rank", "all_rank") - 1))
        .withColumn("kept_until", F.greatest("topic_kept_until", "all_kept_until"))
        .drop("topic_rank", "all_rank", "topic_kept_until", "all_kept_until")
    )


def _conditions(groups: DataFrame) -> DataFrame:
    return groups.where("family is not null").select(
        *GROUP_KEY,
        F.col("from_offset").alias("span_from"),
        F.col("to_offset").alias("span_to"),
        F.col("from_at").alias("group_since"),
        "state_ms",
        "member_count",
        condition_of().alias("condition"),
    )


def condition_of() -> Column:
    """Return the condition of a row of `group_spans`, null where there is no group."""
    family, is_empty = F.col("family"), F.col("member_count") == 0
    protocol = F.col("protocol_type")
    classic = (
        F.when(is_empty & protocol.isNull(), SIMPLE)
        .when(is_empty, EMPTY)
        .when(protocol.eqNullSafe(F.lit(CONSUMER_PROTOCOL)), UNSUBSCRIBED)
        .otherwise(OTHER_PROTOCOL)
    )
    return (
        F.when(family == CLASSIC, classic)
        .when(family == CONSUMER, CONSUMER_GROUP)
        .when(family == STREAMS, STREAMS_GROUP)
        .when(family == SHARE, SHARE_GROUP)
    )


def _kept(places: DataFrame, spans: DataFrame, key: tuple[str, ...], name: str) -> DataFrame:
    """Return what keeps at places of a key, and until when something did before."""
    covers = F.col("place") <= F.col("to_offset")
    return (
        places.join(spans, list(key))
        .where(F.col("from_offset") < F.col("place"))
        .groupBy(*key, "place")
        .agg(
            F.min(F.when(covers, F.col("rank"))).alias(f"{name}_rank"),
            F.max(F.when(~covers, F.col("to_at"))).alias(f"{name}_kept_until"),
        )
    )
