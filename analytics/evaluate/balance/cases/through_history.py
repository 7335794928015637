"""Groups at every epoch of theirs, cut where their topics changed meanwhile.

Members and subscriptions are those at the end of an epoch. What is judged is what was decided: the
assignment of a classic group, the target assignment of the others, as their members are still on
the way to it when an epoch begins.
"""

from __future__ import annotations

from collections.abc import Mapping

import polars as pl

from analytics.evaluate.balance.cases.at_instant import (
    SPAN,
    assembled,
    needed_topics,
    partition_list,
    tasks_of,
    wanted,
    with_assignable,
)
from analytics.evaluate.balance.cases.stretches import sizes_in, stretches
from analytics.replay.groups.group_records import CLASSIC, CONSUMER_PROTOCOL, CURRENT, TARGET
from analytics.replay.groups.item_kinds import PRESENCE, SUBSCRIPTION

_LIFE = ("coordinator_partition", "group_id", "life")
_EPOCH = ("group_id", "epoch_no")
_PLACES = 1 << 32
UNREAD = "an assignment in it is not of the consumer protocol"


def cases_of_history(
    epochs: pl.DataFrame,
    held: pl.DataFrame,
    sizes: pl.DataFrame,
    state: Mapping[str, pl.DataFrame],
    expressions: pl.DataFrame,
    parts: pl.DataFrame,
) -> pl.DataFrame:
    """Return every epoch in which a group had members.

    Args:
        epochs: The table `group_epochs`.
        held: What members held: `coordinator_partition`, `group_id`, `life`, `member_id`, `kind`,
            `role`, `subtopology_id`, `topic`, `topic_id`, `partition`, `group_instance_id`, and
            at the ends of which epochs: `first_epoch_no`, `last_epoch_no` (null: still).
        sizes: `topic_sizes`.
        state: Tables `topics` and `share_partitions`.
        expressions: `resolved_expressions`.
        parts: `subtopologies`.

    Returns:
        What `case_rows.case_of` reads: one row a stretch.
    """
    numbered = _numbered(epochs).with_columns(_in_partition("epoch_no"))
    held = held.with_columns(_in_partition("first_epoch_no", "last_epoch_no"))
    at_epochs = _during(held, numbered)
    wants = wanted(_members(at_epochs), expressions, parts)
    spans = stretches(numbered.drop("life", "coordinator_partition"), wants, sizes)
    times = spans.select(*_EPOCH, "span", "from_timestamp")
    span_wants = times.select(*_EPOCH, "span").join(wants, on=_EPOCH)
    has = _held(at_epochs, times, sizes)
    needed = needed_topics(span_wants, has).join(times, on=SPAN)
    sources = (
        times.join(parts, on="group_id")
        .select(
            *(*SPAN, "from_timestamp", "subtopology_id", "by_regex"),
            pl.col("sources").alias("topic"),
        )
        .explode("topic")
        .drop_nulls("topic")
    )
    known = pl.concat(
        [
            with_assignable(sizes_in(needed, sizes), state["share_partitions"]),
            tasks_of(_with_sizes(sources, sizes)),
        ]
    )
    found = assembled(spans.drop("epoch_no"), span_wants, has, known, state["topics"])
    return found.join(_owned_before(times, at_epochs), on=SPAN, how="left")


def _in_partition(*numbers: str) -> pl.Expr:
    """Return numbers that epochs of a group in other partitions of its topic do not share."""
    return pl.col(numbers).cast(pl.Int64) + pl.col("coordinator_partition") * pl.lit(_PLACES)


def _numbered(epochs: pl.DataFrame) -> pl.DataFrame:
    """Return epochs with members, under the numbers that `held` knows them by."""
    are_consumers = pl.col("protocol_type").eq_missing(pl.lit(CONSUMER_PROTOCOL))
    is_unread = (pl.col("group_type") == CLASSIC) & pl.col("partitions_assigned").is_null()
    number = pl.int_range(1, pl.len() + 1, dtype=pl.Int32).over("coordinator_partition", "group_id")
    return (
        epochs.sort("coordinator_partition", "group_id", "from_offset")
        .with_columns(number.alias("epoch_no"))
        .filter(pl.col("member_count") > 0)
        .select(
            *("group_id", "group_type", "epoch", "assignment_epoch", "protocol_type", "protocol"),
            pl.when(is_unread & are_consumers).then(pl.lit(UNREAD)).alias("unread"),
            pl.col("partitions_moved").alias("moved"),
            *("life", "coordinator_partition", "epoch_no"),
            *("from_offset", "from_timestamp", "to_timestamp"),
        )
    )


def _during(held: pl.DataFrame, epochs: pl.DataFrame) -> pl.DataFrame:
    """Return what was held at the end of each epoch."""
    lives = epochs.group_by(_LIFE).agg(
        pl.col("epoch_no").min().alias("first"), pl.col("epoch_no").max().alias("last")
    )
    first = pl.max_horizontal("first_epoch_no", "first")
    last = pl.min_horizontal("last_epoch_no", "last")
    ends = epochs.select(*_LIFE, "epoch_no", "group_type", "assignment_epoch")
    return (
        held.join(lives, on=_LIFE)
        .with_columns(pl.int_ranges(first, last + 1).alias("epoch_no"))
        .drop("first", "last", "first_epoch_no", "last_epoch_no")
        .explode("epoch_no")
        .join(ends, on=[*_LIFE, "epoch_no"])
    )


def _members(held: pl.DataFrame) -> pl.DataFrame:
    """Return the members of each epoch as `wanted` takes them."""
    is_subscription = pl.col("kind") == SUBSCRIPTION
    words = pl.col("words").str.splitn(" ", 2).struct
    names, regex = words.field("field_0"), words.field("field_1")
    nothing = pl.lit(None, pl.String)
    return (
        held.filter(pl.col("kind").is_in([PRESENCE, SUBSCRIPTION]))
        .group_by(*_EPOCH, "group_type", "member_id")
        .agg(
            pl.col("topic").filter(is_subscription).max().alias("words"),
            pl.col("group_instance_id").max(),
            pl.col("assignment_epoch").max().alias("member_epoch"),
            (pl.col("kind") == PRESENCE).any().alias("is_there"),
        )
        .filter("is_there")
        .with_columns(
            names.str.split(",")
            .list.eval(pl.element().filter(pl.element() != ""))
            .alias("subscribed_topics"),
            pl.when(regex != "").then(regex).alias("subscribed_regex"),
            *(nothing.alias(name) for name in ("rack_id", "state", "missing")),
        )
    )


def _held(at_epochs: pl.DataFrame, times: pl.DataFrame, sizes: pl.DataFrame) -> pl.DataFrame:
    """Return what members had in each stretch; topics that were gone by then go by their id."""
    ends = (
        sizes.drop_nulls("topic_id")
        .sort("partitions")
        .group_by("topic_id")
        .agg(pl.col("until").last().alias("removed"))
    )
    is_gone = (pl.col("removed") <= pl.col("from_timestamp")).fill_null(value=False)
    name = pl.when(~is_gone).then("topic")
    return (
        _assigned(at_epochs)
        .join(times, on=_EPOCH)
        .join(ends, on="topic_id", how="left")
        .with_columns(pl.coalesce("subtopology_id", name, "topic_id").alias("topic"))
        .group_by(*SPAN, "member_id", "topic")
        .agg(partition_list())
    )


def _assigned(at_epochs: pl.DataFrame) -> pl.DataFrame:
    """Return what had been decided: a partition or an active task a row."""
    is_classic = pl.col("group_type") == CLASSIC
    decided = pl.when(is_classic).then(pl.lit(CURRENT)).otherwise(pl.lit(TARGET))
    return at_epochs.filter(
        (pl.col("kind") == decided) & (pl.col("role").fill_null("active") == "active")
    )


def _owned_before(times: pl.DataFrame, at_epochs: pl.DataFrame) -> pl.DataFrame:
    """Return what had an owner in the epoch before: `SPAN`, `owned_before` (null without one)."""
    listed = (
        _assigned(at_epochs)
        .select(
            "group_id",
            pl.col("epoch_no") + 1,
            pl.coalesce("subtopology_id", "topic", "topic_id").alias("topic"),
            "partition",
        )
        .unique()
        .sort("topic", "partition")
        .group_by(_EPOCH)
        .agg(pl.struct("topic", "partition").alias("owned_before"))
    )
    return times.join(listed, on=_EPOCH, how="left").select(*SPAN, "owned_before")


def _with_sizes(sources: pl.DataFrame, sizes: pl.DataFrame) -> pl.DataFrame:
    """Return sources with the counts of their time, null where there were none."""
    key = [*SPAN, "subtopology_id", "topic"]
    found = sizes_in(sources, sizes).select(*key, "partitions", "counted_by")
    return sources.join(found, on=key, how="left")
