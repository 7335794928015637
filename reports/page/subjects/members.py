"""Members of groups: how evenly partitions are dealt, who is restless, and since when."""

from __future__ import annotations

from typing import Final

import polars as pl
import pyarrow as pa
import pyarrow.compute as pc

from reports.charts.groups import members_over_time, rebalances_over_time, spread_of_partitions
from reports.page.model import Grid, Subject
from reports.page.rows import (
    at,
    columns_of,
    dicts,
    doubt_said,
    figure,
    grid_of,
    harmless,
    labels,
    of_so_many,
)
from reports.page.workspace_tables import WorkspaceTables, is_of
from schemas import table

# Assignment: how evenly partitions are dealt, and what other assignors would give.

_EVEN: Final = 100
_ALL_EVEN: Final = "No assignment that can be told could be more even: all scores are 100."
_NO_MEMBERS: Final = "No group has members with partitions."
_MOST_SPREADS: Final = 16
_MOST_ALTERNATIVES: Final = 24
_MORE_GROUPS: Final = 16
_ALTERNATIVES: Final = columns_of("assignment_alternatives")
_UNEVEN: Final = (("score", "ascending"), ("group_id", "ascending"))


def assignment(read: WorkspaceTables, stories: frozenset[str]) -> Subject | None:
    """Return the subject; None where it was not asked."""
    if not read.has("assignment_balance"):
        return None
    spreads = ("group_id", "min_partitions", "mean_partitions", "max_partitions", "verdict")
    is_known = pl.col("mean_partitions").is_not_null()
    uneven = read.largest(
        "assignment_balance", _UNEVEN, _MOST_SPREADS, [*spreads, "score"], is_known
    )
    known = dicts(uneven, *spreads, "score")
    named = labels(row["group_id"] for row in known)
    rows = [
        {
            "group": named[row["group_id"]],
            "fewest": row["min_partitions"],
            "mean": row["mean_partitions"],
            "most": row["max_partitions"],
            "verdict": harmless(str(row["verdict"]).replace("_", " ")),
        }
        for row in known
    ]
    first = known[0] if known else None
    is_even = first is not None and first["score"] == _EVEN
    says = (
        ""
        if first is None
        else _ALL_EVEN
        if is_even
        else f"The most uneven is {harmless(first['group_id'])}: members have "
        f"{first['min_partitions']} to {first['max_partitions']} partitions."
    )
    return Subject(
        anchor="assignment",
        title="Assignment",
        question="How evenly are partitions dealt, and what would each assignor give?",
        notes=() if read.count("assignment_balance") else (_NO_MEMBERS,),
        figures=figure(
            "assignment-spread",
            "Partitions a member: the fewest, the mean, the most",
            says,
            rows,
            spread_of_partitions,
        ),
        grids=(_alternatives(read, stories, is_even=is_even),),
    )


def _alternatives(read: WorkspaceTables, stories: frozenset[str], *, is_even: bool) -> Grid:
    name = "assignment_alternatives"
    source, count = f"evaluations/{name}", read.count(name)
    groups, rows = _MOST_ALTERNATIVES, read.first(name, 0)
    # Some groups have no alternatives: then those of the next ones are shown.
    while rows.num_rows < min(_MOST_ALTERNATIVES, count):
        uneven = read.largest("assignment_balance", _UNEVEN, groups, ["group_id", "score"])
        rows = read.rows(name, where=is_of(uneven["group_id"].to_pylist()))
        if groups >= read.count("assignment_balance"):
            break
        groups *= _MORE_GROUPS
    grid = grid_of(
        "assignment-table",
        f"What each assignor would give {'groups' if is_even else 'the most uneven groups'}",
        _of_groups(rows, uneven) if rows.num_rows else rows,
        _ALTERNATIVES,
        top=_MOST_ALTERNATIVES,
        source=source,
        stories=stories,
    )
    return of_so_many(grid, count, source)


def _of_groups(alternatives: pa.Table, uneven: pa.Table) -> pa.Table:
    """Return alternatives in the order of groups."""
    groups = pc.unique(uneven["group_id"])
    rank = pc.index_in(alternatives["group_id"], value_set=groups)
    ranked = alternatives.append_column("rank", rank)
    order = [("rank", "ascending"), ("is_current", "descending"), ("score", "descending")]
    return ranked.sort_by([*order, ("assignor", "ascending")])


_MOST_GROUPS: Final = 12
_MOST_LINES: Final = 4
_MOST_MARKS: Final = 1500
_MOST_ROWS: Final = 20
_COLUMNS: Final = columns_of("group_churn")
_CHURN: Final = "evaluations/group_churn"
_RESTLESS: Final = (
    ("storms", "descending"),
    ("epochs", "descending"),
    ("group_id", "ascending"),
)


def rebalances(read: WorkspaceTables, stories: frozenset[str]) -> Subject | None:
    """Return the subject; None where it was not asked."""
    if not read.has("group_churn"):
        return None
    columns = [each.name for each in table("group_churn").columns]
    churn = read.largest("group_churn", _RESTLESS, _MOST_ROWS, columns)
    groups = churn["group_id"].to_pylist()[:_MOST_GROUPS]
    named = labels(groups)
    known = _timed(read.rows("rebalances", where=is_of(groups)), "at")
    ticks = [
        {"group": named[row["group_id"]], "at": at(row["at"])}
        for row in dicts(known.slice(0, _MOST_MARKS), "group_id", "at")
    ]
    ticks.sort(key=lambda row: list(named.values()).index(row["group"]))
    storms = [
        {
            "group": named[row["group_id"]],
            "from": at(row["from_timestamp"]),
            "to": at(row["to_timestamp"]),
        }
        for row in dicts(
            _timed(read.rows("rebalance_storms", where=is_of(groups)), "from_timestamp"),
            *("group_id", "from_timestamp", "to_timestamp"),
        )
    ]
    first = dicts(churn.slice(0, 1), "group_id", "epochs", "joined", "left")
    says = (
        f"{harmless(first[0]['group_id'])} is the most restless: {first[0]['epochs']:,} epochs, "
        f"{first[0]['joined'] or 0:,} joined, {first[0]['left'] or 0:,} left."
        if first
        else ""
    )
    doubt = doubt_said(known)
    marked = " Storms are shaded." if storms else ""
    lines = _members(known, groups[:_MOST_LINES])
    return Subject(
        anchor="rebalances",
        title="Rebalances",
        question="Which groups keep rebalancing, and who makes them?",
        notes=() if churn.num_rows else ("No group rebalanced in this dump.",),
        figures=(
            *figure(
                "rebalances-ticks",
                "Rebalances over time (UTC)",
                f"{says}{marked}{doubt}",
                ticks,
                lambda rows, anchor: rebalances_over_time(rows, storms, anchor),
            ),
            *figure(
                "rebalances-members",
                "Members over time, of the most restless groups (UTC)",
                f"{says}{doubt}",
                lines,
                members_over_time,
            ),
        ),
        grids=(
            of_so_many(
                grid_of(
                    "rebalances-table",
                    "Groups, the most restless first",
                    churn,
                    _COLUMNS,
                    top=_MOST_ROWS,
                    source=_CHURN,
                    stories=stories,
                ),
                read.count("group_churn"),
                _CHURN,
            ),
        ),
    )


def _timed(rows: pa.Table, time: str) -> pa.Table:
    """Return the rows that have a time, by it."""
    if not rows.num_rows:
        return rows
    return rows.filter(pc.is_valid(rows[time])).sort_by([(time, "ascending")])


def _members(known: pa.Table, groups: list[str]) -> list[dict[str, object]]:
    named = labels(groups)
    rows = dicts(known, "group_id", "at", "member_count") if known.num_rows else []
    return [
        {
            "group": named[row["group_id"]],
            "at": at(row["at"]),
            "members": row["member_count"],
        }
        for row in rows
        if row["group_id"] in named and row["member_count"] is not None
    ]
