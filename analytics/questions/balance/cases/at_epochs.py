"""What members held at the ends of epochs: subscriptions, and what had been decided.

Rows are many. Epochs and members go by numbers, which are quick to sort and group, and so do names
as values of an `Enum`.
"""

from __future__ import annotations

import numpy as np
import polars as pl

from analytics.replay.groups.group_records import CLASSIC, CONSUMER_PROTOCOL, CURRENT, TARGET
from analytics.replay.groups.item_kinds import PRESENCE, SUBSCRIPTION
from analytics.replay.history.neighbours import EPOCH, LIFE

_GROUP = ("coordinator_partition", "group_id")
_LIFE = (*_GROUP, "life")
_BOUNDS = ("first_epoch_no", "last_epoch_no")
UNREAD = "an assignment in it is not of the consumer protocol"
OF_LIFE = ("life", "coordinator_partition", LIFE, "epoch_no", "is_classic")


def numbered(epochs: pl.DataFrame, held: pl.DataFrame) -> pl.DataFrame:
    """Return the epochs in which somebody was there, with the numbers that `held` knows them by.

    `EPOCH` numbers those of all groups: where numbers follow each other it is one group's.
    """
    are_consumers = pl.col("protocol_type").eq_missing(pl.lit(CONSUMER_PROTOCOL))
    is_classic = pl.col("group_type") == CLASSIC
    is_unread = is_classic & pl.col("partitions_assigned").is_null()
    number = pl.int_range(1, pl.len() + 1, dtype=pl.Int32).over(_GROUP)
    return (
        epochs.sort(*_GROUP, "from_offset")
        .with_columns(
            (pl.int_range(pl.len()) + pl.struct(_GROUP).rle_id()).alias(EPOCH),
            number.alias("epoch_no"),
        )
        .filter(pl.col("member_count") > 0)
        .join(held.select(*_LIFE, LIFE).unique(LIFE), on=_LIFE, maintain_order="left")
        .select(
            *("group_id", "group_type", "epoch", "assignment_epoch", "protocol_type", "protocol"),
            pl.when(is_unread & are_consumers).then(pl.lit(UNREAD)).alias("unread"),
            pl.col("partitions_moved").alias("moved"),
            *("from_offset", "from_timestamp", "to_timestamp", EPOCH),
            *("life", "coordinator_partition", LIFE, "epoch_no", is_classic.alias("is_classic")),
        )
    )


def during(held: pl.DataFrame, epochs: pl.DataFrame) -> pl.DataFrame:
    """Return what was held at the end of each epoch, with `EPOCH` and `is_classic`.

    Args:
        held: `LIFE`, `first_epoch_no`, `last_epoch_no` (null: still), and what is kept.
        epochs: `numbered`.
    """
    number = pl.col(EPOCH)
    lives = epochs.group_by(LIFE).agg(
        number.min().alias("first"),
        number.max().alias("last"),
        (number - pl.col("epoch_no")).first().alias("before"),
    )
    since, until = (pl.col(bound) + pl.col("before") for bound in _BOUNDS)
    there = pl.int_ranges(pl.max_horizontal(since, "first"), pl.min_horizontal(until, "last") + 1)
    its = epochs.select(EPOCH, pl.col(LIFE).alias("its_life"), "is_classic")
    return (
        held.join(lives, on=LIFE)
        .with_columns(there.alias(EPOCH))
        .drop("first", "last", "before", *_BOUNDS)
        .explode(EPOCH, empty_as_null=False)
        .join(its, on=EPOCH)
        .filter(pl.col(LIFE) == pl.col("its_life"))
        .drop(LIFE, "its_life")
    )


def in_order_of_ids(held: pl.DataFrame) -> pl.DataFrame:
    """Return what members held with `member` as their places among all ids in order."""
    members = held.select("member", "member_id").unique("member").sort("member_id")
    numbers = members["member"].to_numpy()
    places = np.zeros(int(numbers.max(initial=-1)) + 1, np.uint32)
    places[numbers] = np.arange(len(numbers))
    return held.with_columns(pl.Series("member", places).gather(held["member"]))


def members_at(held: pl.DataFrame, epochs: pl.DataFrame) -> pl.DataFrame:
    """Return the members of each epoch, in order: what their subscriptions say are `words`.

    Args:
        held: Of `in_order_of_ids`.
        epochs: `numbered`.

    Returns:
        `EPOCH`, `member`, `words`, `member_id`, `group_instance_id`.
    """
    kind = pl.col("kind")
    rows = held.filter(kind.is_in([PRESENCE, SUBSCRIPTION])).select(
        *(LIFE, *_BOUNDS, "member", "member_id", "group_instance_id"),
        pl.when(kind == SUBSCRIPTION).then("topic").alias("words"),
        (kind == PRESENCE).alias("is_there"),
    )
    ids = rows.select("member", "member_id").unique("member")
    texts = ("words", "group_instance_id")
    return (
        during(_with_enum(rows.drop("member_id"), *texts), epochs)
        .group_by(EPOCH, "member")
        .agg(pl.col(*texts).max(), pl.col("is_there").any())
        .filter("is_there")
        .sort(EPOCH, "member")
        .with_columns(pl.col(*texts).cast(pl.String))
        .join(ids, on="member", maintain_order="left")
        .select(EPOCH, "member", "words", "member_id", "group_instance_id")
    )


def assigned_at(held: pl.DataFrame, epochs: pl.DataFrame, removals: pl.DataFrame) -> pl.DataFrame:
    """Return what had been decided: of a classic group what members had, else their targets.

    Args:
        held: Of `in_order_of_ids`.
        epochs: `numbered`.
        removals: `topic_id`, `removed`.

    Returns:
        A partition or an active task a row: `EPOCH`, `member`, `partition`, `removed` (when its
        topic was, null while it lives), `topic` and `gone` (by what a topic goes while it lives and
        then; of a task both are its subtopology): of one `Enum`.
    """
    kind = pl.col("kind")
    rows = (
        held.filter(kind.is_in([CURRENT, TARGET]), pl.col("role").fill_null("active") == "active")
        .join(removals, on="topic_id", how="left")
        .select(
            *(LIFE, *_BOUNDS, "member", "partition", "removed"),
            (kind == CURRENT).alias("is_current"),
            pl.coalesce("subtopology_id", "topic", "topic_id").alias("topic"),
            pl.coalesce("subtopology_id", "topic_id").alias("gone"),
        )
    )
    return (
        during(_with_enum(rows, "topic", "gone"), epochs)
        .filter(pl.col("is_current") == pl.col("is_classic"))
        .drop("is_current", "is_classic")
    )


def _with_enum(rows: pl.DataFrame, *names: str) -> pl.DataFrame:
    """Return rows with texts as values of one `Enum`, which are in the order of the texts."""
    distinct = pl.concat([rows[name].unique() for name in names]).unique().drop_nulls()
    return rows.with_columns(pl.col(names).cast(pl.Enum(distinct.sort())))
