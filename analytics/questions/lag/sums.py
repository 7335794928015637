"""Lag added up: by group, by topic, by member. And which groups read a topic.

What nobody waits for (`stale`) is never added to what somebody does; a partition whose lag is not
known is counted, so that a sum that lacks it says so.

A group reads what its members own or subscribe to. Share groups read what they hold state of,
streams groups what their topology names. What a group has committed and no member claims, it read
once: a client without subscription may still do so, or nobody does.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import polars as pl

from analytics.contracts import contract_schema
from analytics.questions.lag.partitions import IS_OWNED, NEVER_COMMITTED, STALE, by_owner
from analytics.questions.sums import MOST

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from analytics.questions.lag.partitions import GroupTables
    from schemas.evaluation_rules import LagRules

MEMBER: Final = "member"
BY: Final = {
    "group": ("group_id",),
    "topic": ("topic",),
    MEMBER: ("group_id", "member_id", "client_id", "client_host"),
}
"""What lag is added up by, and the columns that tell the sums apart."""

_BURROW_ERRORS: Final = ("STOP", "STALL", "REWIND")
_STATUSES: Final = (*_BURROW_ERRORS, "WARN", "NOT_EVALUABLE", "OK")
_STATUSES_OF_GROUPS: Final = (*("ERR" for _ in _BURROW_ERRORS), "WARN", "NOT_EVALUABLE", "OK")


def parts_of_sums(rows: pl.DataFrame, by: str, rules: LagRules) -> pl.DataFrame:
    """Add up rows of whole groups, to be added to those of others (`summed`).

    Args:
        rows: The table `lag`.
        by: A key of `BY`.
        rules: Which verdict is worse.
    """
    keys = BY[by]
    if by == MEMBER:
        rows = by_owner(rows)
    is_stale = pl.col("kind") == STALE
    lag, wide = pl.col("lag").clip(0), pl.Int128
    return (
        rows.with_columns(
            pl.when(~is_stale).then(lag).alias("live"), pl.when(is_stale).then(lag).alias("stale")
        )
        .group_by(keys, maintain_order=True)
        .agg(
            pl.len().cast(pl.Int64).alias("partitions"),
            pl.col("group_id").n_unique().cast(pl.Int64).alias("groups"),
            # Offsets go up to 2^63 - 1, and somebody commits that one: two of them are more.
            _added("live").cast(wide).alias("lag"),
            pl.col("live").max().alias("max_lag"),
            _added("stale").alias("stale_lag"),
            _added("lost_offsets").alias("lost_offsets"),
            pl.col("lag").is_null().sum().cast(pl.Int64).alias("unknown_lag"),
            _rank("status", _STATUSES).min().alias("status"),
            _rank("verdict", tuple(rules.verdicts)).min().alias("verdict"),
        )
    )


def summed(parts: Iterable[pl.DataFrame], by: str, rules: LagRules) -> pl.DataFrame:
    """Return sums of lag, worst verdict first.

    Args:
        parts: As `parts_of_sums` returns them, each of other groups.
        by: A key of `BY`.
        rules: Which verdict is worse.

    Returns:
        The columns of `BY`; `partitions`, `groups` (how many read it), `lag` (of all that is known
        and not stale, a commit beyond the end counting nothing), `max_lag`, `stale_lag`,
        `lost_offsets` (sums at most `analytics.questions.sums.MOST`), `unknown_lag` (partitions
        whose lag is not known), `status` (as Burrow has it of a group: ERR where a partition is
        worse than WARN; NOT_EVALUABLE where nothing worse is known and one is not evaluable),
        `verdict` (the worst).
    """
    keys = BY[by]
    counted = ("partitions", "groups", "unknown_lag")
    found = pl.concat(parts).group_by(keys, maintain_order=True)
    sums = found.agg(
        pl.col("partitions", "groups").sum(),
        _held("lag"),
        pl.col("max_lag").max(),
        _held("stale_lag"),
        _held("lost_offsets"),
        pl.col(counted[-1]).sum(),
        pl.col("status", "verdict").min(),
    )
    sums = sums.with_columns(
        _named("status", _STATUSES_OF_GROUPS), _named("verdict", tuple(rules.verdicts))
    )
    return sums_in_order(sums, by, rules)


def sums_in_order(sums: pl.DataFrame, by: str, rules: LagRules) -> pl.DataFrame:
    """Return sums of other groups each in the order of `summed`."""
    order = [_rank("verdict", tuple(rules.verdicts)), *map(pl.col, ("lag", *BY[by]))]
    descending = [False, True, *(False for _ in BY[by])]
    return sums.sort(order, descending=descending, nulls_last=True)


def sums_of(rows: pl.DataFrame, by: str, rules: LagRules) -> pl.DataFrame:
    """Return sums of the whole table `lag` (`summed`)."""
    return summed([parts_of_sums(rows, by, rules)], by, rules)


def _added(name: str) -> pl.Expr:
    """Return a sum, null where all are."""
    number = pl.col(name).cast(pl.Int128)
    return pl.when(number.count() > 0).then(number.sum())


def _held(name: str) -> pl.Expr:
    # So it stays the largest lag of all, and wraps to none below zero.
    return _added(name).clip(-MOST - 1, MOST).cast(pl.Int64).alias(name)


def _rank(name: str, order: Sequence[str]) -> pl.Expr:
    numbers = {word: number for number, word in reversed(list(enumerate(order)))}
    return pl.col(name).replace_strict(numbers, default=None, return_dtype=pl.Int32)


def _named(name: str, words: Sequence[str]) -> pl.Expr:
    return pl.col(name).replace_strict(dict(enumerate(words)), return_dtype=pl.String)


def with_capacity(sums: pl.DataFrame, capacity: pl.DataFrame) -> pl.DataFrame:
    """Add to sums by group, in their order, how many members it has and could use."""
    told = capacity.select("group_id", "members", "useful_members", "needed_members")
    return sums.join(told, "group_id", "left", maintain_order="left")


OWNS, SUBSCRIBES, SHARES, COMMITTED, LEFT = "owns", "subscribes", "shares", "committed", "left"
WAYS: Final = (OWNS, SUBSCRIBES, SHARES, COMMITTED, LEFT)
"""How a group is known to read a topic, the surest first. By the last two nobody is known to do so
now."""

READING: Final = (OWNS, SUBSCRIBES, SHARES)
_INTERNAL: Final = "__"
_READS: Final = ["topic", "group_id"]


def topic_readers(rows: pl.DataFrame, tables: GroupTables, shares: pl.DataFrame) -> pl.DataFrame:
    """Return a row for each topic and each group that reads it or did: the table `topic_readers`.

    Args:
        rows: The table `lag`.
        tables: State of the groups at the instant.
        shares: The table `share_partitions`: `group_id`, `topic`.
    """
    current = tables.assignments.filter(pl.col("kind") == "current")
    subscribed = pl.col("subscribed_topics").alias("topic")
    # What the table `lag` knows: tasks of streams own what it says that members own.
    is_read = rows.filter(IS_OWNED | (pl.col("kind") != NEVER_COMMITTED))
    left = pl.when(pl.col("kind") == STALE).then(pl.lit(LEFT)).otherwise(pl.lit(COMMITTED))
    how = pl.when(IS_OWNED).then(pl.lit(OWNS)).otherwise(left)
    ways = [
        current.select(*_READS, pl.lit(OWNS).alias("how")),
        tables.members.select(subscribed, "group_id", pl.lit(SUBSCRIBES).alias("how")).explode(
            "topic"
        ),
        tables.inputs.select(*_READS, pl.lit(SUBSCRIBES).alias("how")),
        shares.select(*_READS, pl.lit(SHARES).alias("how")),
        is_read.select(*_READS, how.alias("how")),
    ]
    rank = _rank("how", WAYS).min().alias("how")
    found = pl.concat(each.unique() for each in ways).filter(pl.col("topic").is_not_null())
    found = found.group_by(_READS).agg(rank).with_columns(_named("how", WAYS))
    last = rows.group_by(_READS).agg(pl.col("last_commit_at").max())
    found = found.join(tables.groups.select("group_id", "group_type"), "group_id")
    types = contract_schema("topic_readers")
    return (
        found.join(last, _READS, "left")
        .select(name for name in types if name not in {"complete", "missing"})
        .sort(_READS)
    )


def unread_topics(topics: pl.DataFrame, readers: pl.DataFrame) -> list[str]:
    """Return the topics that no group is known to read, or to have read; without internal ones.

    Args:
        topics: The table `topics`: `topic`, `deleted_at`.
        readers: The table `topic_readers`, of all groups.
    """
    there = topics.filter(
        pl.col("deleted_at").is_null() & ~pl.col("topic").str.starts_with(_INTERNAL)
    )
    unread = there.join(readers, "topic", "anti")["topic"]
    return unread.unique().sort().to_list()


def with_readers(
    sums: pl.DataFrame, readers: pl.DataFrame, unread: Sequence[str], *, is_whole: bool
) -> pl.DataFrame:
    """Add to sums by topic who reads it, and rows of topics without committed offsets.

    Args:
        sums: As `summed` returns them by topic.
        readers: The table `topic_readers`.
        unread: Topics that nobody reads.
        is_whole: No row was left out of the sums: other topics get a row, too.

    Returns:
        `sums` with `once_readers` (groups that committed, and of which no member claims it),
        `readers` (groups that read it), and `groups` of both.
    """
    is_now = pl.col("how").is_in(READING)
    whose = readers.group_by("topic", maintain_order=True).agg(
        pl.col("group_id").filter(~is_now).alias("once_readers"),
        pl.col("group_id").filter(is_now).alias("readers"),
    )
    if is_whole:
        named = pl.concat([whose["topic"], pl.Series("topic", unread, pl.String)]).unique()
        others = pl.DataFrame(named).join(sums, "topic", "anti").sort("topic")
        sums = pl.concat([sums, others], how="diagonal")
    found = sums.join(whose, "topic", "left", maintain_order="left").with_columns(
        pl.col("once_readers", "readers").fill_null([])
    )
    groups = pl.col("once_readers").list.len() + pl.col("readers").list.len()
    return found.with_columns(groups.cast(pl.Int64).alias("groups"))
