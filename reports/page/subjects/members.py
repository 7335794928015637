"""Members of groups: how evenly partitions are dealt, who is restless, and since when."""

from __future__ import annotations

from typing import Final

import pyarrow as pa
import pyarrow.compute as pc

from reports.charts.groups import members_over_time, rebalances_over_time, spread_of_partitions
from reports.page.model import Subject
from reports.page.rows import at, columns_of, dicts, doubt_said, figure, grid_of, labels
from reports.page.texts import harmless
from reports.page.workspace_tables import WorkspaceTables

# Assignment: how evenly partitions are dealt, and what other assignors would give.

_MOST_SPREADS: Final = 16
_MOST_ALTERNATIVES: Final = 24
_ALTERNATIVES: Final = columns_of("assignment_alternatives")


def assignment(read: WorkspaceTables, stories: frozenset[str]) -> Subject | None:
    """Return the subject; None where it was not asked."""
    if not read.has("assignment_balance"):
        return None
    uneven = read.rows("assignment_balance").sort_by(
        [("score", "ascending"), ("group_id", "ascending")]
    )
    known = dicts(
        uneven.filter(pc.is_valid(uneven["mean_partitions"])).slice(0, _MOST_SPREADS),
        *("group_id", "min_partitions", "mean_partitions", "max_partitions", "verdict"),
    )
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
    says = (
        f"The most uneven is {harmless(first['group_id'])}: members have "
        f"{first['min_partitions']} to {first['max_partitions']} partitions."
        if first
        else ""
    )
    return Subject(
        anchor="assignment",
        title="Assignment",
        question="How evenly are partitions dealt, and what would each assignor give?",
        notes=() if uneven.num_rows else ("No group has members with partitions.",),
        figures=figure(
            "assignment-spread",
            "Partitions a member: the fewest, the mean, the most",
            says,
            rows,
            spread_of_partitions,
        ),
        grids=(
            grid_of(
                "assignment-table",
                "What each assignor would give the most uneven groups",
                _of_groups(read.rows("assignment_alternatives"), uneven),
                _ALTERNATIVES,
                top=_MOST_ALTERNATIVES,
                source="evaluations/assignment_alternatives",
                stories=stories,
            ),
        ),
    )


def _of_groups(alternatives: pa.Table, uneven: pa.Table) -> pa.Table:
    """Return alternatives in the order of groups."""
    if not alternatives.num_rows:
        return alternatives
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


def rebalances(read: WorkspaceTables, stories: frozenset[str]) -> Subject | None:
    """Return the subject; None where it was not asked."""
    if not read.has("group_churn"):
        return None
    churn = read.rows("group_churn").sort_by(
        [("storms", "descending"), ("epochs", "descending"), ("group_id", "ascending")]
    )
    groups = churn["group_id"].to_pylist()[:_MOST_GROUPS]
    named = labels(groups)
    known = _of(read.rows("rebalances"), groups, "at")
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
            _of(read.rows("rebalance_storms"), groups, "from_timestamp"),
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
            grid_of(
                "rebalances-table",
                "Groups, the most restless first",
                churn,
                _COLUMNS,
                top=_MOST_ROWS,
                source="evaluations/group_churn",
                stories=stories,
            ),
        ),
    )


def _of(rows: pa.Table, groups: list[str], time: str) -> pa.Table:
    if not rows.num_rows:
        return rows
    wanted = pc.is_in(rows["group_id"], pa.array(groups, pa.string()))
    return rows.filter(pc.and_(wanted, pc.is_valid(rows[time]))).sort_by([(time, "ascending")])


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
