"""Rows of the tables about rebalances as they are shown."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import pyarrow as pa

from reports.balance.rows import readable, table_of
from reports.row_formats import Section

REBALANCE_HEADS = {
    "group_id": "GROUP",
    "epoch": "EPOCH",
    "at": "AT",
    "since_previous_ms": "SINCE-PREVIOUS",
    "state": "STATE",
    "member_count": "#MEMBERS",
    "joined": "JOINED",
    "left": "LEFT",
    "restarted": "RESTARTED",
    "fenced": "FENCED",
    "subscription_changed": "SUBSCRIPTION",
    "partitions_moved": "MOVED",
    "missing_before": "MISSING",
    "stored_again": "AGAIN",
    "coordinator_change": "COORDINATOR",
}
CHURN_HEADS = {
    "group_id": "GROUP",
    "group_type": "TYPE",
    "epochs": "EPOCHS",
    "missing": "MISSING",
    "per_hour": "PER-HOUR",
    "median_seconds_between": "BETWEEN",
    "joined": "JOINED",
    "left": "LEFT",
    "restarted": "RESTARTED",
    "fenced": "FENCED",
    "subscription_changed": "SUBSCRIPTION",
    "top_client_id": "TOP-CLIENT",
    "top_client_changes": "ITS-CHANGES",
    "coordinator_changes": "COORDINATORS",
    "storms": "STORMS",
}
STORM_HEADS = {
    "group_id": "STORM-OF-GROUP",
    "from_timestamp": "FROM",
    "to_timestamp": "TO",
    "epochs": "EPOCHS",
    "per_hour": "PER-HOUR",
    "top_client_id": "TOP-CLIENT",
    "members_involved": "MEMBERS",
    "cause": "CAUSE",
}
STANDING_HEADS = {
    "group_id": "STANDS-STILL",
    "kind": "WHAT",
    "member_id": "MEMBER",
    "since": "SINCE",
    "detail": "DETAIL",
}
_WHO = ("joined", "left", "restarted", "fenced", "subscription_changed")
_MOST_NAMED = 2
_COMPACTED = "compacted"
_SECOND = 1000


def section(
    rows: pa.Table, heads: Mapping[str, str], *, for_people: bool, also: Sequence[str] = ()
) -> Section:
    """Return the rows of one table.

    Args:
        rows: The table.
        heads: The columns shown.
        for_people: Lists are cut short, numbers rounded, and what compaction took is said.
        also: Columns that formats for programs have besides.
    """
    found = [_shown(row) if for_people else row for row in readable(rows)]
    return Section(table_of(found, rows.column_names), heads, also)


def _shown(row: Mapping[str, Any]) -> dict[str, Any]:
    shown = {name: _text(each) for name, each in row.items()}
    if row.get("missing_is_compacted"):
        shown["missing_before"] = _COMPACTED
    if row.get("compacted"):
        shown["missing"] = f">= {row['missing']}"
    if row.get("since_previous_ms") is not None:
        shown["since_previous_ms"] = f"{row['since_previous_ms'] / _SECOND:.3f} s"
    if row.get("median_seconds_between") is not None:
        shown["median_seconds_between"] = f"{row['median_seconds_between']:.1f} s"
    return shown


def _text(value: object) -> str | None:
    match value:
        case None:
            return None
        case list():
            more = len(value) - _MOST_NAMED
            named = ", ".join(map(str, value[:_MOST_NAMED]))
            return f"{named} and {more} more" if more > 0 else named
        case float():
            return f"{value:.1f}"
        case _:
            return str(value)
