"""Who fills the offsets topic: committers, groups left behind, what is near a limit."""

from __future__ import annotations

from typing import Final

import pyarrow as pa
import pyarrow.compute as pc

from reports.quantities import duration
from reports.row_formats import Section

_COMMITTER_HEADS: Final = {
    "group_id": "GROUP",
    "commits_per_second": "COMMITS/S",
    "bytes_per_day": "BYTES/DAY",
    "interval": "INTERVAL",
    "commits": "COMMITS",
    "offsets": "#PARTITIONS",
    "unchanged": "UNCHANGED",
    "saved_bytes_per_day": "WOULD-SAVE/DAY",
    "observed": "OBSERVED",
    "partition": "PARTITION",
}
_PATTERN_HEADS: Final = {
    "pattern": "PATTERN",
    "groups": "GROUPS",
    "deletable_groups": "WITHOUT-MEMBERS",
    "live_records": "LIVE",
    "live_bytes": "LIVE-BYTES",
    "bytes": "BYTES",
    "last_timestamp": "LAST-RECORD",
}
_DELETION_HEADS: Final = {
    "group_id": "GROUP",
    "group_type": "TYPE",
    "live_records": "LIVE",
    "last_timestamp": "LAST-RECORD",
    "command": "COMMAND",
}
_OFFSET_HEADS: Final = {
    "group_id": "GROUP",
    "topic": "TOPIC",
    "offsets": "OFFSETS",
    "topics_left": "TOPICS-LEFT",
    "members": "MEMBERS",
    "last_commit_at": "LAST-COMMIT",
    "command": "COMMAND",
}
_GROWTH_HEADS: Final = {
    "group_id": "GROUP",
    "record_type": "RECORD-TYPE",
    "most": "MOST",
    "grows_with": "OF",
    "most_bytes": "BYTES",
    "each": "BYTES-EACH",
    "more_fit": "MORE-FIT",
    "basis": "BASIS",
    "limit_bytes": "ALLOWED",
}
_LIMIT_HEADS: Final = {
    "group_id": "GROUP",
    "record_type": "RECORD-TYPE",
    "setting": "LIMIT",
    "largest_bytes": "LARGEST",
    "limit_bytes": "ALLOWED",
    "percent": "SHARE",
    "limit_source": "SOURCE",
}
_CLOCK_HEADS: Final = {
    "group_id": "GROUP",
    "partition": "PARTITION",
    "clock": "CLOCK",
    "records": "RECORDS",
    "ahead": "AHEAD",
    "behind": "BEHIND",
    "first_offset": "FIRST-RECORD",
    "first_at": "APPENDED",
}


def committers_section(rows: pa.Table) -> Section:
    """Return the table `committers`."""
    shown = rows.append_column("interval", _durations(rows["interval_ms"]))
    shown = shown.append_column("observed", _durations(rows["observed_ms"]))
    shown = shown.append_column("unchanged", _percent(rows["unchanged_share"]))
    place = shown.column_names.index("commits_per_second")
    rate = pc.round(shown["commits_per_second"], 3)
    shown = shown.set_column(place, "commits_per_second", rate)
    return _section(
        shown,
        _COMMITTER_HEADS,
        rows,
        "committers",
        "Committers",
        spare=("observed", "partition", "offsets", "commits"),
    )


def patterns_section(rows: pa.Table) -> Section:
    """Return the table `one_shot_groups`."""
    return _section(
        rows,
        _PATTERN_HEADS,
        rows,
        "one_shot_groups",
        "Groups whose names look generated (--table group_deletions lists commands to review)",
        spare=("bytes", "live_bytes"),
    )


def deletions_section(rows: pa.Table) -> Section:
    """Return the table `group_deletions`."""
    return _section(rows, _DELETION_HEADS, rows, "group_deletions", "")


def offset_deletions_section(rows: pa.Table) -> Section:
    """Return the table `offset_deletions`."""
    return _section(
        rows,
        _OFFSET_HEADS,
        rows,
        "offset_deletions",
        "Offsets of topics that are gone (to review)",
        spare=("last_commit_at", "members", "topics_left"),
    )


def growth_of_records_section(rows: pa.Table) -> Section:
    """Return the table `record_growth`."""
    shown = rows.append_column("each", pc.round(rows["bytes_each"], 1))
    return _section(
        shown,
        _GROWTH_HEADS,
        rows,
        "record_growth",
        "How many more members or topics fit into a group's records",
        spare=("limit_bytes", "basis"),
    )


def clocks_section(rows: pa.Table) -> Section:
    """Return the table `clock_differences`."""
    shown = rows.append_column("ahead", _durations(rows["most_ahead_ms"]))
    shown = shown.append_column("behind", _durations(rows["most_behind_ms"]))
    return _section(
        shown, _CLOCK_HEADS, rows, "clock_differences", "Times that contradict each other"
    )


def limits_section(rows: pa.Table) -> Section:
    """Return the table `size_limits`."""
    shown = rows.append_column("percent", _percent(rows["share"]))
    return _section(
        shown, _LIMIT_HEADS, rows, "size_limits", "Near what brokers take", problem="is_near"
    )


def _section(
    shown: pa.Table,
    heads: dict[str, str],
    rows: pa.Table,
    name: str,
    title: str,
    *,
    spare: tuple[str, ...] = (),
    problem: str | None = None,
) -> Section:
    also = [each for each in rows.column_names if each not in heads]
    return Section(
        shown,
        heads,
        also,
        name=name,
        key=name,
        title=title,
        spare=spare,
        problem=problem,
        is_marked="complete" in also,
    )


def _durations(column: pa.ChunkedArray) -> pa.Array:
    return pa.array([duration(each) for each in column.to_pylist()], pa.string())


def _percent(column: pa.ChunkedArray) -> pa.Array:
    texts = [None if each is None else f"{100 * each:.0f} %" for each in column.to_pylist()]
    return pa.array(texts, pa.string())
