"""Under which condition a committed offset was at a place in the log: what its expiry rests on.

Takes and gives frames of polars, of whole groups of any number of partitions.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import polars as pl

from analytics.replay.groups.group_records import (
    CLASSIC,
    CONSUMER,
    CONSUMER_PROTOCOL,
    GROUP_KEY,
    SHARE,
    STREAMS,
)
from analytics.replay.log.record_position import AFTER_ALL
from analytics.replay.offsets.commit_rows import GROUP, TOPIC
from analytics.replay.spans.group_spans import SUBSCRIBED

SIMPLE, EMPTY, UNSUBSCRIBED = "simple_group", "empty_group", "unsubscribed_topic"
OTHER_PROTOCOL_TYPE = "other_protocol_type"
CONSUMER_GROUP, STREAMS_GROUP, SHARE_GROUP = "consumer_group", "streams_group", "share_group"
AT_THE_END: Final = AFTER_ALL
"""The place behind the last record."""


BY_NAMES: Final = (GROUP_KEY, (*GROUP_KEY, "topic"))
BY_NUMBERS: Final = ((GROUP,), (TOPIC,))
"""What tells groups apart, and what tells topics of groups apart."""


def with_condition(
    places: pl.DataFrame,
    groups: pl.DataFrame,
    protections: pl.DataFrame,
    protects: Sequence[str],
    by: tuple[Sequence[str], Sequence[str]] = BY_NAMES,
) -> pl.DataFrame:
    """Add what the group of each offset was at a place in the log.

    Args:
        places: What `by` names and `place` (bigint): records below it count.
        groups: `group_spans`.
        protections: `protection_spans`.
        protects: Which reasons of theirs count, what goes before first: not all releases heed all
            of them.
        by: `BY_NAMES`, or `BY_NUMBERS` where places, groups and protections have these.

    Returns:
        The places with `condition` (simple_group, empty_group, unsubscribed_topic: a classic group
        of consumers with members; other_protocol_type, consumer_group, streams_group,
        share_group), `state_ms` (bigint: when a classic group took its state; null where not
        known), `member_count` (of classic groups), `group_since` (timestamp: since when the group
        was what it was), `group_from` (bigint: offset of the record that made it so; null where
        none did), `skips_generation` (boolean: whether a generation without a record followed),
        `kept_by` (what keeps the offset, null where nothing does) and `kept_until`
        (timestamp: when what kept it before ended, null where nothing did).
    """
    is_group = pl.col("family").is_not_null()
    of_group, of_topic = by
    spans = groups.select(
        *of_group,
        pl.col("from_offset").alias("begins"),
        condition_of().alias("condition"),
        *(
            pl.when(is_group).then(name).alias(as_)
            for name, as_ in {
                "state_ms": "state_ms",
                "member_count": "member_count",
                "from_at": "group_since",
                "from_offset": "group_from",
                "skips_generation": "skips_generation",
            }.items()
        ),
    )
    found = _last_before(places, spans, of_group).with_columns(
        pl.col("condition").fill_null(SIMPLE)
    )
    for why in protects:
        told = protections.filter(pl.col("why") == why)
        found = _with_protection(found, told, of_topic if why == SUBSCRIBED else of_group, why)
    kept_by = pl.coalesce(pl.lit(None, pl.String), *(f"kept_by_{why}" for why in protects))
    return found.with_columns(
        kept_by.alias("kept_by"),
        pl.max_horizontal(f"until_{why}" for why in protects).alias("kept_until"),
    ).drop(f"{name}_{why}" for why in protects for name in ("kept_by", "until"))


def condition_of() -> pl.Expr:
    """Return the condition of a row of `group_spans`, null where there is no group."""
    family, is_empty = pl.col("family"), pl.col("member_count") == 0
    protocol = pl.col("protocol_type")
    classic = (
        pl.when(is_empty & protocol.is_null())
        .then(pl.lit(SIMPLE))
        .when(is_empty)
        .then(pl.lit(EMPTY))
        .when(protocol == CONSUMER_PROTOCOL)
        .then(pl.lit(UNSUBSCRIBED))
        .otherwise(pl.lit(OTHER_PROTOCOL_TYPE))
    )
    return (
        pl.when(family == CLASSIC)
        .then(classic)
        .when(family == CONSUMER)
        .then(pl.lit(CONSUMER_GROUP))
        .when(family == STREAMS)
        .then(pl.lit(STREAMS_GROUP))
        .when(family == SHARE)
        .then(pl.lit(SHARE_GROUP))
    )


def _last_before(places: pl.DataFrame, spans: pl.DataFrame, key: Sequence[str]) -> pl.DataFrame:
    """Add the last span of the key that `begins` before a place."""
    return (
        places.sort("place")
        .join_asof(
            spans.sort("begins"),
            left_on="place",
            right_on="begins",
            by=list(key),
            allow_exact_matches=False,
            coalesce=False,
            check_sortedness=False,
        )
        .drop("begins")
    )


def _with_protection(
    places: pl.DataFrame, spans: pl.DataFrame, key: Sequence[str], why: str
) -> pl.DataFrame:
    """Add whether one reason keeps an offset at its place, and until when it did before."""
    ordered = spans.sort(*key, "from_offset").select(
        *key,
        pl.col("from_offset").alias("begins"),
        pl.col("to_offset").alias("ends"),
        pl.col("to_at").alias("ends_at"),
        pl.col("to_at").cum_max().shift(1).over(list(key)).alias("ended_before"),
    )
    covers = pl.col("place") <= pl.col("ends")
    return (
        _last_before(places, ordered, key)
        .with_columns(
            pl.when(covers).then(pl.lit(why)).alias(f"kept_by_{why}"),
            pl.when(covers)
            .then("ended_before")
            .otherwise(pl.max_horizontal("ended_before", "ends_at"))
            .alias(f"until_{why}"),
        )
        .drop("ends", "ends_at", "ended_before")
    )
