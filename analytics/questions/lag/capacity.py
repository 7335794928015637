"""How many members a group could use: by its partitions, by how uneven they are, and by its pace.

A partition is read by one member. So no more members than partitions have work, and where one
partition takes much of the group's work, fewer: once a member has nothing but the heaviest
partition, another one takes nothing off it. How much work a partition is, its history tells: the
records a second by which its commits advanced. Where a lag grows members read as fast as they can,
and how many of them would keep up with the logs follows from what one of them reads.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from heapq import heapreplace
from math import ceil
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from analytics.questions.lag.read_partitions import STALE, by_owner, is_owned
from analytics.questions.lag.trend import GROWING

if TYPE_CHECKING:
    from collections.abc import Sequence

NO_MEMBERS: Final = "no member is there"
NO_PACE: Final = "no commit advanced in the history: only partitions count"
UNKNOWN_PACE: Final = "cannot tell: how fast some of its commits advanced is not known"
KEEPS_UP: Final = "its lag does not grow"
NO_TREND: Final = "whether its lag grows is not known"

CAPACITY = pa.schema(
    [
        ("group_id", pa.string()),
        ("members", pa.int64()),
        ("idle_members", pa.int64()),
        ("partitions", pa.int64()),
        ("moving_partitions", pa.int64()),
        ("records_per_second", pa.float64()),
        ("heaviest_topic", pa.string()),
        ("heaviest_partition", pa.int32()),
        ("heaviest_share", pa.float64()),
        ("useful_members", pa.int64()),
        ("needed_members", pa.int64()),
        ("reason", pa.string()),
    ]
)


def group_capacity(rows: pa.Table, members: pa.Table) -> pa.Table:
    """Return a row for each group: the table `group_capacity`.

    Args:
        rows: The table `lag`.
        members: The table `members`: `group_id`.

    Returns:
        `members`, and of these `idle_members` that own nothing; `partitions` that it reads (what it
        no longer subscribes to left out), `moving_partitions` whose commits advanced;
        `records_per_second` of all, the heaviest partition and its share of them;
        `useful_members`: more would leave the busiest member as busy as it is; `needed_members`:
        so many would keep up with the logs, null where that is not known, `reason` says why. Where
        nothing tells how fast some of the commits advanced, all that rests on paces is null.
    """
    live = rows.filter(pc.not_equal(rows["kind"], STALE))
    there = _counted(members["group_id"])
    owned = by_owner(live.filter(is_owned(live)).select(["group_id", "owners"]))
    owners = _counted(owned.group_by(["group_id", "member_id"]).aggregate([])["group_id"])
    of_groups = _of_groups(live)
    moving = _moving(live)
    found = [
        _of_group(row, moving.get(row["group_id"]), there, owners) for row in of_groups.to_pylist()
    ]
    return pa.Table.from_pylist(found, CAPACITY)


@dataclass(frozen=True)
class _Moving:
    """Partitions of a group whose commits advanced: records a second, and the heaviest one."""

    paces: list[float]
    topic: str
    partition: int


def _of_groups(live: pa.Table) -> pa.Table:
    """Return by group how many partitions there are, and how their lags change, by name."""
    told = live.select(["group_id", "lag_per_second"])
    told = told.append_column("has_trend", pc.is_valid(live["trend"]))
    is_growing = pc.fill_null(pc.equal(live["trend"], GROWING), fill_value=False)
    told = told.append_column("is_growing", is_growing)
    # Where commits may be missing between others nobody knows by how much: they may have.
    may_have = pc.and_(pc.is_null(live["advanced"]), pc.greater(live["commits"], 0))
    has_advanced = pc.or_(pc.greater(pc.fill_null(live["advanced"], 0), 0), may_have)
    has_advanced = pc.fill_null(has_advanced, fill_value=False)
    told = told.append_column("has_advanced", pc.cast(has_advanced, pa.int64()))
    lacks_pace = pc.and_(has_advanced, pc.is_null(live["records_per_second"]))
    told = told.append_column("lacks_pace", lacks_pace)
    return (
        told.group_by("group_id", use_threads=False)
        .aggregate(
            [("group_id", "count"), ("lag_per_second", "sum"), ("has_advanced", "sum")]
            + [(name, "any") for name in ("has_trend", "is_growing", "lacks_pace")]
        )
        .sort_by("group_id")
    )


def _moving(live: pa.Table) -> dict[str, _Moving]:
    advances = pc.and_(pc.greater(live["advanced"], 0), pc.greater(live["records_per_second"], 0))
    rows = live.filter(advances).select(["group_id", "topic", "partition", "records_per_second"])
    groups = rows["group_id"].combine_chunks().dictionary_encode()
    # Stable: of equally heavy ones the first counts.
    order = np.argsort(groups.indices.to_numpy(), kind="stable")
    paces = rows["records_per_second"].to_numpy()[order]
    names = groups.indices.to_numpy()[order]
    begins = np.flatnonzero(np.diff(names, prepend=-1))
    ends = np.append(begins, names.size)[1:]
    heaviest = [int(order[b + np.argmax(paces[b:e])]) for b, e in zip(begins, ends, strict=True)]
    whose = rows.select(["group_id", "topic", "partition"]).take(pa.array(heaviest, pa.int64()))
    return {
        row["group_id"]: _Moving(paces[begin:end].tolist(), row["topic"], row["partition"])
        for row, begin, end in zip(whose.to_pylist(), begins, ends, strict=True)
    }


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


def _of_group(
    row: Mapping[str, Any],
    moving: _Moving | None,
    there: Mapping[str, int],
    owning: Mapping[str, int],
) -> dict[str, Any]:
    group = row["group_id"]
    members, owners = there.get(group, 0), owning.get(group, 0)
    if row["lacks_pace_any"]:
        moving = None
    paces = [] if moving is None else moving.paces
    total = sum(paces)
    needed, reason = _needed(row, total, owners)
    useful: int | None = useful_members(paces, row["group_id_count"])
    if not paces:
        useful, reason = (None, UNKNOWN_PACE) if row["lacks_pace_any"] else (useful, NO_PACE)
    return {
        "group_id": group,
        "members": members,
        "idle_members": max(members - owners, 0),
        "partitions": row["group_id_count"],
        "moving_partitions": row["has_advanced_sum"],
        "records_per_second": total if paces else None,
        "heaviest_topic": moving and moving.topic,
        "heaviest_partition": None if moving is None else moving.partition,
        "heaviest_share": max(paces) / total if paces else None,
        "useful_members": useful,
        "needed_members": needed,
        "reason": reason,
    }


def _needed(row: Mapping[str, Any], total: float, owners: int) -> tuple[int | None, str | None]:
    """Return how many members would keep up, or why that is not known.

    While a lag grows, members are taken to read as fast as they can; what they lack is how fast it
    grows.
    """
    if not owners:
        return None, NO_MEMBERS
    if not row["has_trend_any"]:
        return None, NO_TREND
    grows = float(row["lag_per_second_sum"] or 0)
    if not row["is_growing_any"] or grows <= 0 or total <= 0:
        return None, KEEPS_UP
    return ceil((total + grows) * owners / total), None


def _counted(names: pa.ChunkedArray) -> dict[str, int]:
    return {each["values"]: each["counts"] for each in pc.value_counts(names).to_pylist()}
