"""The state tables of groups and offsets as plain rows by key, as the references tell them."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from analytics.replay.groups.coordinator_log import coordinator_log
from analytics.replay.groups.fold import folded_groups, groups_gone
from analytics.replay.offsets.offset_state import committed_offsets, pending_offsets
from analytics.replay.state import assignments, groups, members
from schemas import table

if TYPE_CHECKING:
    from collections.abc import Mapping

    import polars as pl

    from analytics.replay.log.rules import ReplayRules

Found = dict[str, dict[tuple[Any, ...], dict[str, Any]]]
"""Rows by table and key."""


def replayed_tables(
    decoded: Mapping[str, pl.DataFrame], topics: pl.DataFrame, rules: ReplayRules
) -> Found:
    """Replay what was decoded and cut.

    Args:
        decoded: The tables of `__consumer_offsets`, and `transaction_log` (it may be empty).
        topics: All of them: `topic` and `topic_id`.
        rules: Of the release.

    Returns:
        Rows in which times are epoch milliseconds and lists are sorted.
    """
    frames = replayed_frames(decoded, topics, rules)
    return {name: _by_key(name, frame) for name, frame in frames.items()}


def replayed_frames(
    decoded: Mapping[str, pl.DataFrame], topics: pl.DataFrame, rules: ReplayRules
) -> dict[str, pl.DataFrame]:
    """Return the state tables of groups and offsets; arguments as of `replayed_tables`."""
    state = folded_groups(coordinator_log(decoded), decoded, rules)
    committed = committed_offsets(decoded, rules, groups_gone(state))
    pending = pending_offsets(decoded, rules)
    found = groups(state, committed, pending)
    return {
        "committed_offsets": committed,
        "pending_offsets": pending,
        "groups": found,
        "members": members(state, found),
        "assignments": assignments(state, topics, found),
    }


def _by_key(name: str, frame: pl.DataFrame) -> dict[tuple[Any, ...], dict[str, Any]]:
    rows = [
        {field: _plain(value) for field, value in row.items()}
        for row in frame.iter_rows(named=True)
    ]
    found = {tuple(row[field] for field in table(name).key): row for row in rows}
    assert len(found) == len(rows), f"one row a key in {name}"
    return found


def _plain(value: Any) -> Any:
    if isinstance(value, datetime):
        return round(value.astimezone(UTC).timestamp() * 1000)
    return sorted(value) if isinstance(value, list) else value
