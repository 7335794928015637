"""Groups whose names look generated: clusters by pattern, and what would delete them."""

from __future__ import annotations

import re
import shlex
from collections import defaultdict
from collections.abc import Mapping, Sequence
from functools import cache
from typing import TYPE_CHECKING, Any, Final

from analytics.contracts import table_of
from schemas.group_tools import tool_of

if TYPE_CHECKING:
    import pyarrow as pa

    from schemas.usage_rules import UsageRules

_SUMS: Final = ("records", "bytes", "live_records", "live_bytes")


def pattern_of(name: str, patterns: Sequence[tuple[str, str]]) -> str | None:
    """Return a name with what looks generated taken out; None where nothing does."""
    found = name
    for pattern, stands in _compiled(tuple(patterns)):
        found = pattern.sub(stands, found)
    return found if found != name else None


@cache
def _compiled(patterns: tuple[tuple[str, str], ...]) -> tuple[tuple[re.Pattern[str], str], ...]:
    # There may be as many groups as there are CI runs: each is looked at.
    return tuple((re.compile(pattern), stands) for pattern, stands in patterns)


def one_shot_groups(
    usage: pa.Table, groups: pa.Table, rules: UsageRules
) -> tuple[pa.Table, pa.Table]:
    """Return the tables `one_shot_groups`, the most groups first, and `group_deletions`.

    Args:
        usage: The table `topic_usage`.
        groups: The state table `groups`.
        rules: What looks generated, and how many groups make a cluster.
    """
    sums = _by_group(usage)
    state = {row["group_id"]: row for row in groups.to_pylist()}
    clusters: dict[str, list[str]] = defaultdict(list)
    for name in sorted({*sums, *state}):
        pattern = pattern_of(name, rules.patterns)
        if pattern is not None:
            clusters[pattern].append(name)
    found, deletions = [], []
    for pattern, names in clusters.items():
        if len(names) < rules.least_groups:
            continue
        there = [state[name] for name in names if name in state]
        idle = [row for row in there if not row["member_count"] and row["complete"]]
        found.append(
            {
                "pattern": pattern,
                "groups": len(there),
                "deletable_groups": len(idle),
                **_total([sums[name] for name in names if name in sums]),
                **_marks(there),
            }
        )
        deletions += [_deletion(pattern, row, sums.get(row["group_id"], {})) for row in idle]
    order = [("groups", "descending"), ("live_records", "descending"), ("pattern", "ascending")]
    by_name = [("pattern", "ascending"), ("group_id", "ascending")]
    return (
        table_of("one_shot_groups", found).sort_by(order),
        table_of("group_deletions", deletions).sort_by(by_name),
    )


def _marks(groups: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Return what is lacking of groups: of how many, and of the first of them what."""
    lacking = [row["missing"] for row in groups if not row["complete"]]
    words = (
        f"{len(lacking)} of {len(groups)} groups cannot be told: {lacking[0]}" if lacking else None
    )
    return {"complete": not lacking, "missing": words}


def _by_group(usage: pa.Table) -> dict[str, dict[str, Any]]:
    rows = usage.group_by("group_id").aggregate(
        [*((name, "sum") for name in _SUMS), ("last_timestamp", "max")]
    )
    return {
        row["group_id"]: {
            **{name: row[f"{name}_sum"] for name in _SUMS},
            "last_timestamp": row["last_timestamp_max"],
        }
        for row in rows.to_pylist()
        if row["group_id"] is not None
    }


def _total(rows: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    total: dict[str, Any] = {}
    for name in _SUMS:
        known = [row[name] for row in rows if row[name] is not None]
        total[name] = sum(known) if known or name.endswith("records") else None
    times = [row["last_timestamp"] for row in rows if row["last_timestamp"] is not None]
    return {**total, "last_timestamp": max(times, default=None)}


def _deletion(pattern: str, row: Mapping[str, Any], sums: Mapping[str, Any]) -> dict[str, Any]:
    tool = tool_of(row["group_type"])
    group = shlex.quote(row["group_id"])
    return {
        "pattern": pattern,
        "group_id": row["group_id"],
        "group_type": row["group_type"],
        "live_records": sums.get("live_records") or 0,
        "live_bytes": sums.get("live_bytes"),
        "last_timestamp": sums.get("last_timestamp"),
        "command": f'{tool.script} --bootstrap-server "$BOOTSTRAP_SERVER" --delete --group {group}',
    }
