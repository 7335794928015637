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
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa
import pyarrow.compute as pc

from analytics.evaluate.lag.read_partitions import STALE
from analytics.evaluate.lag.trend import GROWING

if TYPE_CHECKING:
    from collections.abc import Sequence

NO_MEMBERS: Final = "no member is there"
NO_PACE: Final = "no commit advanced in the history: only partitions count"
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
        so many would keep up with the logs, null where that is not known, `reason` says why.
    """
    live = rows.filter(pc.not_equal(rows["kind"], STALE))
    there = _counted(members["group_id"])
    owners = _counted(
        live.filter(pc.is_valid(live["member_id"]))
        .group_by(["group_id", "member_id"])
        .aggregate([])["group_id"]
    )
    columns = ("topic", "partition", "records_per_second", "advanced", "trend", "lag_per_second")
    by_group: dict[str, list[dict[str, Any]]] = {}
    for row in live.select(["group_id", *columns]).to_pylist():
        by_group.setdefault(row["group_id"], []).append(row)
    found = [
        _of_group(group, of_group, there.get(group, 0), owners.get(group, 0))
        for group, of_group in sorted(by_group.items())
    ]
    return pa.Table.from_pylist(found, CAPACITY)


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
    group: str, rows: Sequence[dict[str, Any]], members: int, owners: int
) -> dict[str, Any]:
    moving = [row for row in rows if row["advanced"] and row["records_per_second"]]
    paces = [float(row["records_per_second"]) for row in moving]
    total = sum(paces)
    heaviest = max(moving, key=_pace, default=None)
    needed, reason = _needed(rows, total, owners)
    return {
        "group_id": group,
        "members": members,
        "idle_members": max(members - owners, 0),
        "partitions": len(rows),
        "moving_partitions": len(moving),
        "records_per_second": total if moving else None,
        "heaviest_topic": heaviest and heaviest["topic"],
        "heaviest_partition": heaviest and heaviest["partition"],
        "heaviest_share": _pace(heaviest) / total if heaviest is not None else None,
        "useful_members": useful_members(paces, len(rows)),
        "needed_members": needed,
        "reason": reason if moving else NO_PACE,
    }


def _pace(row: dict[str, Any]) -> float:
    return float(row["records_per_second"])


def _needed(
    rows: Sequence[dict[str, Any]], total: float, owners: int
) -> tuple[int | None, str | None]:
    """Return how many members would keep up, or why that is not known.

    While a lag grows, members are taken to read as fast as they can; what they lack is how fast it
    grows.
    """
    if not owners:
        return None, NO_MEMBERS
    trends = [row["trend"] for row in rows]
    if all(each is None for each in trends):
        return None, NO_TREND
    if GROWING not in trends:
        return None, KEEPS_UP
    grows = sum(float(row["lag_per_second"] or 0) for row in rows)
    if grows <= 0 or total <= 0:
        return None, KEEPS_UP
    return ceil((total + grows) * owners / total), None


def _counted(names: pa.ChunkedArray) -> dict[str, int]:
    return {each["values"]: each["counts"] for each in pc.value_counts(names).to_pylist()}
