"""Rows of the tables about expiry as they are shown."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any

import pyarrow as pa

from reports.quantities import duration
from reports.row_formats import Section
from schemas.generated_names import tool_naming

Row = Mapping[str, Any]

GROUP_HEADS = {
    "group_id": "GROUP",
    "offsets": "OFFSETS",
    "rules": "RULE",
    "next": "NEXT-EXPIRES-AT",
    "statuses": "STATUS",
    "named_by": "NAMED-BY",
}
OFFSET_HEADS = {
    "group_id": "GROUP",
    "topic": "TOPIC",
    "partition": "PARTITION",
    "committed_offset": "CURRENT-OFFSET",
    "log_end_offset": "LOG-END-OFFSET",
    "lag": "LAG",
    "consumer_id": "CONSUMER-ID",
    "host": "HOST",
    "client_id": "CLIENT-ID",
    "rule": "RULE",
    "base_timestamp": "COUNTS-FROM",
    "expires_at": "EXPIRES-AT",
    "next_cleanup_at": "CLEANUP-BY",
    "status": "STATUS",
    "blocked_by": "BLOCKED-BY",
    "note": "NOTE",
}
SPARE = (
    *("client_id", "host", "base_timestamp", "log_end_offset", "consumer_id", "next_cleanup_at"),
    *("blocked_by", "lag"),
)
"""What text leaves out first where there is no room."""
WHAT_IF_HEADS = {
    "retention_minutes": "RETENTION-MINUTES",
    "group_id": "GROUP",
    "offsets": "OFFSETS",
    "lost_now": "LOST-NOW",
    "lost_once": "LOST-ONCE",
    "first_lost_at": "FIRST-LOST-AT",
    "next_expires_at": "NEXT-EXPIRES-AT",
    "longest_idle": "LONGEST-IDLE",
    "observed": "OBSERVED",
    "verdict": "VERDICT",
    "named_by": "NAMED-BY",
    "reason": "REASON",
}
REMOVAL_HEADS = {
    "group_id": "GROUP",
    "count": "OFFSETS",
    "cause": "CAUSE",
    "confidence": "CONFIDENCE",
    "verdict": "VERDICT",
    "first": "FIRST-REMOVED-AT",
    "last": "LAST-REMOVED-AT",
    "reason": "REASON",
}
STATUSES = ("overdue", "due", "blocked", "cannot_tell", "scheduled", "protected")
"""Worst first."""
WHAT_IF_VERDICTS = (
    *("would_lose_now", "would_have_lost", "cannot_tell", "not_lost_in_period", "safe"),
)
REMOVAL_VERDICTS = ("early", "late", "cannot_tell", "on_time", "not_applicable")
PROBLEMS = frozenset(
    {
        *("overdue", "due", "blocked", "cannot_tell"),
        *("would_lose_now", "would_have_lost", "early", "late"),
    }
)


def group_section(expiration: pa.Table, *, for_people: bool) -> Section:
    """Return a row a group: how many offsets, by which rules, when the next one goes."""
    groups: dict[str, list[Row]] = {}
    for row in readable(expiration):
        groups.setdefault(row["group_id"], []).append(row)
    rows = [
        {
            "group_id": group,
            "offsets": len(offsets),
            "rules": ", ".join(sorted({each["rule"] for each in offsets})),
            "next": min(
                (each["expires_at"] for each in offsets if each["expires_at"]), default=None
            ),
            "statuses": _counted(each["status"] for each in offsets),
            "named_by": tool_naming(group),
            "is_problem": any(each["status"] in PROBLEMS for each in offsets),
            "worst": min((each["status"] for each in offsets), key=STATUSES.index),
        }
        for group, offsets in sorted(groups.items())
    ]
    heads = dict(GROUP_HEADS)
    if for_people:
        rows = _worst_first(rows, "worst", STATUSES)
        _without_tools(heads, rows)
    return Section(
        table_of(rows, [*GROUP_HEADS, "is_problem"]),
        heads,
        name="groups",
        key="groups",
        title="Groups",
        problem="is_problem",
    )


def offset_section(expiration: pa.Table, described: pa.Table, *, for_people: bool) -> Section:
    """Return a row an offset, with the columns of kafka-consumer-groups.

    Args:
        expiration: The table `offset_expiration`.
        described: Rows of `describe`: `group`, `topic`, `partition`, `lag`, `consumer_id`, `host`,
            `client_id`.
        for_people: Only the columns with a head.
    """
    owners = {
        (each["group"], each["topic"], each["partition"]): each for each in described.to_pylist()
    }
    rows = []
    for row in readable(expiration):
        owner = owners.get((row["group_id"], row["topic"], row["partition"]), {})
        rows.append(
            {
                **row,
                **{name: owner.get(name) for name in ("lag", "consumer_id", "host", "client_id")},
                "is_problem": row["status"] in PROBLEMS,
            }
        )
    heads = dict(OFFSET_HEADS)
    if for_people:
        rows = _worst_first(rows, "status", STATUSES)
        if not any(row["note"] for row in rows):
            del heads["note"]
    names = list(dict.fromkeys([*expiration.column_names, *OFFSET_HEADS]))
    also = [] if for_people else [name for name in names if name not in OFFSET_HEADS]
    return Section(
        table_of(rows, [*names, "is_problem"]),
        heads,
        also,
        name="offsets",
        title="Offsets",
        problem="is_problem",
        spare=SPARE,
    )


def what_if_section(what_if: pa.Table) -> Section:
    """Return a row a retention and group, those first that lose offsets."""
    rows = [
        {
            **row,
            "longest_idle": duration(row["longest_idle_ms"]),
            "observed": _observed(row),
            "named_by": tool_naming(row["group_id"]),
            "is_problem": row["verdict"] in PROBLEMS,
        }
        for row in readable(what_if)
    ]
    rows = _worst_first(rows, "verdict", WHAT_IF_VERDICTS)
    for row in rows:
        if row["verdict"] == "not_lost_in_period":
            row["verdict"] = f"not lost in the {row['observed']} observed"
        row["verdict"] = row["verdict"].replace("_", " ")
    names = [*what_if.column_names, "longest_idle", "observed", "named_by", "is_problem"]
    heads = dict(WHAT_IF_HEADS)
    _without_tools(heads, rows)
    return Section(
        table_of(rows, names),
        heads,
        name="what_if",
        key="what_if",
        title="What if",
        problem="is_problem",
        spare=("first_lost_at", "longest_idle", "observed"),
    )


def _without_tools(heads: dict[str, str], rows: Iterable[Row]) -> None:
    """Leave out which tool named a group where none of them has such a name."""
    if not any(row["named_by"] for row in rows):
        del heads["named_by"]


def _observed(row: Row) -> str | None:
    if row["observed_from"] is None or row["observed_to"] is None:
        return None
    period = datetime.fromisoformat(row["observed_to"]) - datetime.fromisoformat(
        row["observed_from"]
    )
    return duration(period // timedelta(milliseconds=1))


def removal_section(removals: pa.Table) -> Section:
    """Return a row a group, cause and verdict: how many offsets went, and when."""
    acts: dict[tuple[str, ...], list[Row]] = {}
    for row in readable(removals):
        key = tuple(str(row[name]) for name in ("group_id", "cause", "confidence", "verdict"))
        acts.setdefault((*key, row["reason"] or ""), []).append(row)
    rows = [
        {
            **dict(zip(("group_id", "cause", "confidence", "verdict", "reason"), key, strict=True)),
            "count": len(gone),
            "first": _first(each["removed_at"] for each in gone),
            "last": max((each["removed_at"] for each in gone if each["removed_at"]), default=None),
            "is_problem": key[3] in PROBLEMS,
        }
        for key, gone in sorted(acts.items())
    ]
    rows = _worst_first(rows, "verdict", REMOVAL_VERDICTS)
    return Section(
        table_of(rows, [*REMOVAL_HEADS, "is_problem"]),
        REMOVAL_HEADS,
        name="removals",
        key="removals",
        title="Removed",
        problem="is_problem",
    )


def _worst_first(rows: list[dict[str, Any]], name: str, order: Sequence[str]) -> list[Any]:
    ranks = {word: rank for rank, word in enumerate(order)}
    return sorted(
        rows,
        # Nobody comes back for what a tool committed that named its group by itself.
        key=lambda row: (ranks.get(row[name], len(ranks)), row.get("named_by") is not None),
    )


def readable(rows: pa.Table) -> list[dict[str, Any]]:
    """Return rows with their times as ISO 8601, UTC, milliseconds."""
    times = [each.name for each in rows.schema if pa.types.is_timestamp(each.type)]
    found: list[dict[str, Any]] = rows.to_pylist()
    for row in found:
        for name in times:
            if row[name] is not None:
                when = row[name].replace(tzinfo=None)
                row[name] = when.isoformat(timespec="milliseconds") + "Z"
    return found


def table_of(rows: Iterable[Row], names: Iterable[str]) -> pa.Table:
    """Return rows as a table; a column of nothing but nulls is one of texts."""
    listed = list(rows)
    columns = {name: pa.array([row.get(name) for row in listed]) for name in names}
    return pa.table(
        {
            name: column.cast(pa.string()) if pa.types.is_null(column.type) else column
            for name, column in columns.items()
        }
    )


def _first(times: Iterable[str | None]) -> str | None:
    return min((each for each in times if each is not None), default=None)


def _counted(words: Iterable[str]) -> str:
    counts = Counter(words)
    return ", ".join(f"{count} {word}" for word, count in sorted(counts.items()))
