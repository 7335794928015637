"""Topics that grew: an epoch was the first to assign a partition beyond all others."""

from __future__ import annotations

from typing import Final

import polars as pl

from analytics.replay.groups.group_records import CLASSIC

_LIFE = ("coordinator_partition", "group_id", "life")
_TOPIC = (*_LIFE, "topic")
_MOST_NAMED: Final = 3
_EVER: Final = -1


def grown_topics(held: pl.DataFrame) -> pl.DataFrame:
    """Return by epoch the topics of which it assigned a partition beyond all before, in words.

    A classic group's records, and target assignments of the others, have all partitions of a topic
    at once: one beyond those that the group had of the topic before was not there then.

    Args:
        held: The table `assignment_history`.

    Returns:
        `coordinator_partition`, `group_id`, `life`, `epoch`, `grown`.
    """
    # What may have begun earlier is taken to have been there from the beginning.
    since = pl.when("from_is_bound").then(pl.lit(_EVER)).otherwise("from_epoch")
    return (
        _beyond(held, since)
        .sort(*_TOPIC, "epoch", "partition")
        .group_by(*_TOPIC, "epoch", maintain_order=True)
        .agg("partition")
        .with_columns(_words().alias("grown"))
        .group_by(*_LIFE, "epoch", maintain_order=True)
        .agg(pl.col("grown").str.join("; "))
    )


def perhaps_grown_topics(held: pl.DataFrame) -> pl.DataFrame:
    """Return the epochs that are the first left to assign a partition beyond all before.

    Compaction may have taken earlier ones that had it, too.

    Args:
        held: The table `assignment_history`.

    Returns:
        `coordinator_partition`, `group_id`, `life`, `epoch`, each once.
    """
    return _beyond(held, pl.col("from_epoch")).select(*_LIFE, "epoch").unique()


def _beyond(held: pl.DataFrame, since: pl.Expr) -> pl.DataFrame:
    """Return partitions beyond all of earlier epochs, and the epoch that had each first."""
    kind = (
        pl.when(pl.col("group_type") == CLASSIC).then(pl.lit("current")).otherwise(pl.lit("target"))
    )
    first = (
        held.filter((pl.col("kind") == kind) & pl.col("topic").is_not_null())
        .group_by(*_TOPIC, "partition")
        .agg(since.min().alias("epoch"))
        .drop_nulls("epoch")
    )
    before = (
        first.group_by(*_TOPIC, "epoch")
        .agg(pl.col("partition").max().alias("most"))
        .sort(*_TOPIC, "epoch")
        .with_columns(pl.col("most").cum_max().shift(1).over(_TOPIC).alias("before"))
    )
    return first.join(before, on=[*_TOPIC, "epoch"]).filter(pl.col("partition") > pl.col("before"))


def _words() -> pl.Expr:
    number = pl.col("partition").list.len().cast(pl.Int64)
    noun = pl.when(number == 1).then(pl.lit("partition")).otherwise(pl.lit("partitions"))
    listed = pl.col("partition").list.head(_MOST_NAMED).cast(pl.List(pl.String)).list.join(", ")
    more = pl.when(number > _MOST_NAMED).then(pl.format(" and {} more", number - _MOST_NAMED))
    return pl.format("{} has {} {}{} now", "topic", noun, listed, more.otherwise(pl.lit("")))
