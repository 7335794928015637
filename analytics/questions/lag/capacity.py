"""How many members a group could use: by its partitions, by how uneven they are, and by its pace.

A partition is read by one member. So no more members than partitions have work, and where one
partition takes much of the group's work, fewer: once a member has nothing but the heaviest
partition, another one takes nothing off it. How much work a partition is, its history tells: the
records a second by which its commits advanced. Where a lag grows members read as fast as they can,
and how many of them would keep up with the logs follows from what one of them reads.
"""

from __future__ import annotations

from heapq import heapreplace
from math import ceil
from typing import TYPE_CHECKING, Final

import polars as pl

from analytics.questions.lag.pace import GROWING
from analytics.questions.lag.partitions import IS_OWNED, STALE, by_owner

if TYPE_CHECKING:
    from collections.abc import Sequence

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
