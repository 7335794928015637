"""Lag added up: by group, by topic, by member. And which groups read a topic.

What nobody waits for (`stale`) is never added to what somebody does; a partition whose lag is not
known is counted, so that a sum that lacks it says so. So is one whose committed offset is beyond
the end: `auto.offset.reset` decides what is read again, and Kafka's number, which is below zero,
would hide as much of other lags.

A group reads what its members own or subscribe to. Share groups read what they hold state of,
streams groups what their topology names. What a group has committed and no member claims, it read
once: a client without subscription may still do so, or nobody does.
"""

from __future__ import annotations

from heapq import heapreplace
from math import ceil
from typing import TYPE_CHECKING, Final

import polars as pl

from analytics.contracts import contract_schema
from analytics.questions.lag.offsets import IS_OWNED, NEVER_COMMITTED, STALE, by_owner
from analytics.questions.lag.pace import GROWING
from analytics.questions.sums import AT_LEAST, AT_LEAST_ABOUT, held_sum, wide_sum
from analytics.replayed.data_logs import EXACT, INTERPOLATED

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from analytics.questions.lag.offsets import GroupTables
    from schemas.evaluation_rules import LagRules

# How many members a group could use: by its partitions, by how uneven they are, and by its pace.
#
# A partition is read by one member. So no more members than partitions have work, and where one
# partition takes much of the group's work, fewer: once a member has nothing but the heaviest
# partition, another one takes nothing off it. How much work a partition is, its history tells:
# the records a second by which its commits advanced. Where a lag grows members read as fast as
# they can, and how many of them would keep up with the logs follows from what one of them reads.

NO_MEMBERS: Final = "no member is there"
NO_PACE: Final = "no commit advanced in the history: only partitions count"
UNKNOWN_PACE: Final = "cannot tell: how fast some of its commits advanced is not known"
KEEPS_UP: Final = "its lag does not grow"
NO_TREND: Final = "whether its lag grows is not known"

CAPACITY: Final = {
    "group_id": pl.String,
    "members": pl.Int64,
    "idle_members": pl.Int64,
    "partitions": pl.Int64,
    "moving_partitions": pl.Int64,
    "records_per_second": pl.Float64,
    "heaviest_topic": pl.String,
    "heaviest_partition": pl.Int32,
    "heaviest_share": pl.Float64,
    "useful_members": pl.Int64,
    "needed_members": pl.Int64,
    "reason": pl.String,
}


def group_capacity(rows: pl.DataFrame, members: pl.DataFrame) -> pl.DataFrame:
    """Return a row for each group: the table `group_capacity`, without marks.

    Args:
        rows: The table `lag`, of whole groups.
        members: The table `members`: `group_id`.

    Returns:
        `members`, and of these `idle_members` that own nothing; `partitions` that it reads (what it
        no longer subscribes to left out), `moving_partitions` whose commits advanced;
        `records_per_second` of all, the heaviest partition and its share of them;
        `useful_members`: more would leave the busiest member as busy as it is; `needed_members`:
        so many would keep up with the logs, null where that is not known, `reason` says why. Where
        nothing tells how fast some of the commits advanced, all that rests on paces is null.
    """
    live = rows.filter(pl.col("kind") != STALE)
    owned = by_owner(live.filter(IS_OWNED).select("group_id", "owners"))
    there = members.group_by("group_id").agg(pl.len().cast(pl.Int64).alias("members"))
    owning = pl.col("member_id").n_unique().cast(pl.Int64).alias("owners")
    owners = owned.group_by("group_id").agg(owning)
    found = _of_groups(live).join(_moving(live), "group_id", "left")
    for each in (there, owners):
        found = found.join(each, "group_id", "left")
    found = found.sort("group_id").with_columns(
        pl.col("members", "owners").fill_null(0),
        *(pl.when(~pl.col("lacks_pace")).then(name).alias(name) for name in _OF_PACES),
    )
    total, grows = pl.col("records_per_second"), pl.col("lag_per_second")
    useful = pl.when(total.is_not_null()).then("useful_members").otherwise("partitions")
    needed = ((total + grows) * pl.col("owners") / total).ceil().cast(pl.Int64)
    is_growing = pl.col("is_growing") & (grows > 0) & (total > 0)
    why = (
        pl.when("lacks_pace")
        .then(pl.lit(UNKNOWN_PACE))
        .when(total.is_null())
        .then(pl.lit(NO_PACE))
        .when(pl.col("owners") == 0)
        .then(pl.lit(NO_MEMBERS))
        .when(~pl.col("has_trend"))
        .then(pl.lit(NO_TREND))
        .when(~is_growing.fill_null(value=False))
        .then(pl.lit(KEEPS_UP))
    )
    return found.with_columns(
        (pl.col("members") - pl.col("owners")).clip(0).alias("idle_members"),
        pl.when(~pl.col("lacks_pace")).then(useful).alias("useful_members"),
        pl.when(why.is_null()).then(needed).alias("needed_members"),
        why.alias("reason"),
    ).select(pl.col(name).cast(kind) for name, kind in CAPACITY.items())


_OF_PACES: Final = ("records_per_second", "heaviest_topic", "heaviest_partition", "heaviest_share")


def _of_groups(live: pl.DataFrame) -> pl.DataFrame:
    """Return by group how many partitions there are, and how their lags change."""
    # Where commits may be missing between others nobody knows by how much: they may have.
    may_have = pl.col("advanced").is_null() & (pl.col("commits") > 0)
    has_advanced = ((pl.col("advanced") > 0) | may_have).fill_null(value=False)
    lacks = has_advanced & pl.col("records_per_second").is_null()
    return live.group_by("group_id").agg(
        pl.len().cast(pl.Int64).alias("partitions"),
        has_advanced.sum().cast(pl.Int64).alias("moving_partitions"),
        pl.col("lag_per_second").sum(),
        pl.col("trend").is_not_null().any().alias("has_trend"),
        (pl.col("trend") == GROWING).any().alias("is_growing"),
        lacks.any().alias("lacks_pace"),
    )


def _moving(live: pl.DataFrame) -> pl.DataFrame:
    """Return of each group with partitions that move their pace, and the heaviest of them."""
    moving = live.filter((pl.col("advanced") > 0) & (pl.col("records_per_second") > 0))
    pace = pl.col("records_per_second")
    found = moving.group_by("group_id", maintain_order=True).agg(
        pace.alias("paces"),
        # Of equally heavy ones the first counts.
        pl.col("topic").get(pace.arg_max()).alias("heaviest_topic"),
        pl.col("partition").get(pace.arg_max()).alias("heaviest_partition"),
        pace.max().alias("heaviest"),
    )
    paces = found["paces"].to_list()
    return found.with_columns(
        pl.Series("records_per_second", [sum(each) for each in paces], pl.Float64),
        pl.Series("useful_members", [useful_members(each, 0) for each in paces], pl.Int64),
    ).select(
        *("group_id", "records_per_second", "heaviest_topic", "heaviest_partition"),
        (pl.col("heaviest") / pl.col("records_per_second")).alias("heaviest_share"),
        "useful_members",
    )


def useful_members(paces: Sequence[float], partitions: int) -> int:
    """Return with how many members the busiest one is as little busy as it can be.

    Partitions are dealt the heaviest first, each to the member that has least: the fewest members
    of which none then has more than the heaviest partition.

    Args:
        paces: Records a second of partitions that move, above zero.
        partitions: How many there are.
    """
    if not paces:
        return partitions
    heaviest = max(paces)
    # Shares of a record are no reason for another member.
    most = heaviest * (1 + 1e-9)
    ordered = sorted(paces, reverse=True)
    for members in range(max(1, ceil(sum(paces) / most)), len(paces)):
        loads = [0.0] * members
        for pace in ordered:
            heapreplace(loads, loads[0] + pace)
        if max(loads) <= most:
            return members
    return len(paces)


LAG_BOUND: Final = "lag_bound"

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
    is_counted = (pl.col("lag") >= 0).fill_null(value=False)
    is_near = is_counted & (pl.col("log_end_bound") == INTERPOLATED).fill_null(value=False)
    return (
        rows.with_columns(
            *(
                pl.when(is_counted & is_of).then("lag").alias(name)
                for name, is_of in (("live", ~is_stale), ("stale", is_stale))
            ),
            is_counted=is_counted,
            is_least=~is_counted & ~is_stale,
            is_near=is_near & ~is_stale,
        )
        .group_by(keys, maintain_order=True)
        .agg(
            pl.len().cast(pl.Int64).alias("partitions"),
            pl.col("group_id").n_unique().cast(pl.Int64).alias("groups"),
            # Offsets go up to 2^63 - 1, and somebody commits that one: two of them are more.
            wide_sum("live").alias("lag"),
            pl.col("live").max().alias("max_lag"),
            wide_sum("stale").alias("stale_lag"),
            wide_sum("lost_offsets").alias("lost_offsets"),
            (~pl.col("is_counted")).sum().cast(pl.Int64).alias("unknown_lag"),
            pl.col("is_least", "is_near").any(),
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
        and not stale), `lag_bound` (`lag_bound_of`; null where `lag` is), `max_lag`, `stale_lag`,
        `lost_offsets` (sums at most `analytics.questions.sums.MOST`), `unknown_lag` (partitions
        that no lag is added up of: it is not known, or the commit is beyond the end), `status` (as
        Burrow has it of a group: ERR where a partition is worse than WARN; NOT_EVALUABLE where
        nothing worse is known and one is not evaluable), `verdict` (the worst).
    """
    keys = BY[by]
    found = pl.concat(parts).group_by(keys, maintain_order=True)
    sums = found.agg(
        pl.col("partitions", "groups").sum(),
        held_sum("lag").alias("lag"),
        pl.col("max_lag").max(),
        held_sum("stale_lag").alias("stale_lag"),
        held_sum("lost_offsets").alias("lost_offsets"),
        pl.col("unknown_lag").sum(),
        pl.col("is_least", "is_near").any(),
        pl.col("status", "verdict").min(),
    )
    sums = sums.with_columns(
        lag_bound_of("is_least", "is_near").alias(LAG_BOUND),
        _named("status", _STATUSES_OF_GROUPS),
        _named("verdict", tuple(rules.verdicts)),
    )
    return sums_in_order(sums.drop("is_least", "is_near"), by, rules)


def lag_bound_of(is_least: str, is_near: str) -> pl.Expr:
    """Return how sure sums `lag` are: null where there is none.

    Args:
        is_least: A column: a lag that is not known, or below zero, is left out.
        is_near: A column: the end that a lag counts to is interpolated.
    """
    word = (
        pl.when(pl.col(is_least) & pl.col(is_near))
        .then(pl.lit(AT_LEAST_ABOUT))
        .when(is_least)
        .then(pl.lit(AT_LEAST))
        .when(is_near)
        .then(pl.lit(INTERPOLATED))
        .otherwise(pl.lit(EXACT))
    )
    return pl.when(pl.col("lag").is_not_null()).then(word)


def sums_in_order(sums: pl.DataFrame, by: str, rules: LagRules) -> pl.DataFrame:
    """Return sums of other groups each in the order of `summed`."""
    order = [_rank("verdict", tuple(rules.verdicts)), *map(pl.col, ("lag", *BY[by]))]
    descending = [False, True, *(False for _ in BY[by])]
    return sums.sort(order, descending=descending, nulls_last=True)


def sums_of(rows: pl.DataFrame, by: str, rules: LagRules) -> pl.DataFrame:
    """Return sums of the whole table `lag` (`summed`)."""
    return summed([parts_of_sums(rows, by, rules)], by, rules)


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
