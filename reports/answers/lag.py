"""The answer of `lag`: partitions or sums, what is shown beside them, and what verdicts mean."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc

from reports.layout.output_format import OutputFormat
from reports.layout.section import MARKS, LongSection, Rows, words_in
from reports.layout.sentences import nothing
from reports.quantities import duration
from reports.row_formats import Section, Text, render, rendered

_SOUND: Final = ("caught_up", "moving", "behind", "idle", "stale")
"""Verdicts that need nobody's attention by themselves."""
_HEADS: Final = {
    "group_id": "GROUP",
    "topic": "TOPIC",
    "partition": "PARTITION",
    "verdict": "VERDICT",
    "status": "STATUS",
    "committed_offset": "CURRENT-OFFSET",
    "log_end_offset": "LOG-END-OFFSET",
    "lag": "LAG",
    "lag_read_committed": "LAG-COMMITTED",
    "lost_offsets": "LOST",
    "time_lag": "TIME-LAG",
    "trend": "TREND",
    "drain": "DRAINED-IN",
    "loss_in": "LOST-IN",
    "kind": "KIND",
    "last_advance_at": "LAST-ADVANCE",
    "log_start_offset": "LOG-START-OFFSET",
    "member_id": "CONSUMER-ID",
    "reason": "REASON",
}
_SPARE: Final = (
    "lag_read_committed",
    *("log_start_offset", "last_advance_at", "kind", "member_id", "log_end_offset"),
    *("trend", "drain", "loss_in"),
)
_SUM_HEADS: Final = {
    "partitions": "#PARTITIONS",
    "verdict": "WORST-VERDICT",
    "status": "STATUS",
    "lag": "LAG",
    "max_lag": "MAX-LAG",
    "stale_lag": "STALE-LAG",
    "lost_offsets": "LOST",
    "unknown_lag": "UNKNOWN",
}
_KEY_HEADS: Final = {
    "group_id": "GROUP",
    "topic": "TOPIC",
    "member_id": "CONSUMER-ID",
    "client_id": "CLIENT-ID",
    "client_host": "HOST",
}
_HISTORY_HEADS: Final = {
    "group_id": "GROUP",
    "topic": "TOPIC",
    "partition": "PARTITION",
    "status": "STATUS",
    "from_timestamp": "FROM",
    "to_timestamp": "TO",
    "committed_offset": "CURRENT-OFFSET",
    "rule": "RULE",
}
_MOVES_HEADS: Final = {
    "group_id": "GROUP",
    "topic": "TOPIC",
    "partition": "PARTITION",
    "kind": "KIND",
    "effective_timestamp": "AT",
    "previous_offset": "FROM-OFFSET",
    "committed_offset": "TO-OFFSET",
    "advance": "ADVANCE",
    "previous_epoch": "FROM-EPOCH",
    "epoch": "TO-EPOCH",
    "previous_member_id": "FROM-CONSUMER-ID",
    "member_id": "TO-CONSUMER-ID",
    "origin": "BY",
    "previous_at": "LAST-COMMIT",
}
_GROWTH_HEADS: Final = {
    "group_id": "GROUP",
    "topic": "TOPIC",
    "partition": "PARTITION",
    "earlier_lag": "EARLIER-LAG",
    "lag": "LAG",
    "grown": "GROWN",
    "grown_per_hour": "AN-HOUR",
    "appended": "APPENDED",
    "committed": "COMMITTED",
    "from_timestamp": "FROM",
    "to_timestamp": "TO",
}
_GROWTH_SPARE: Final = ("to_timestamp", "from_timestamp")
_READERS_HEADS: Final = {
    "topic": "TOPIC",
    "group_id": "GROUP",
    "group_type": "TYPE",
    "how": "HOW",
    "last_commit_at": "LAST-COMMIT",
}
_MOVE_SPARE: Final = (
    *("previous_at", "advance", "previous_member_id", "member_id", "origin"),
    *("previous_epoch", "epoch"),
)
_SIGNS: Final = {"at_least": ">= ", "at_most": "<= ", "estimated": "~ "}
_OPEN: Final = ("topic", "partition", "last_stable_offset")
_DUE: Final = "due"
_MOST_NAMED: Final = 5
_NEVER: Final = "never"


def lag_text(
    tables: Mapping[str, Rows],
    figures: Mapping[str, Rows],
    output_format: OutputFormat,
    metadata: Mapping[str, Any],
    *,
    by: str,
    with_history: bool,
) -> Text:
    """Return the answer as text.

    Args:
        tables: Of the question, by name.
        figures: `rows`, the partitions that are shown, and `sums` where they are added up.
        output_format: The format.
        metadata: What JSON has beside the tables.
        by: What lag is added up by.
        with_history: Show when statuses changed, and where offsets moved in steps.
    """
    rows, sums = figures["rows"], figures.get("sums")
    if sums is None:
        sections = [LongSection(rows, lag_section)]
    else:
        sections = [LongSection(sums, partial(_sum_section, by=by))]
    if "lag_growth" in tables:
        sections.append(LongSection(tables["lag_growth"], _growth_section))
    if with_history:
        sections.append(LongSection(tables["status_history"], _history_section))
        if tables["offset_moves"].num_rows or output_format.is_for_programs:
            sections.append(LongSection(tables["offset_moves"], moves_section))
    if output_format.is_for_programs:
        if by == "topic":
            sections.append(LongSection(tables["topic_readers"], _readers_section))
        if by == "group":
            sections.append(LongSection(tables["group_capacity"], _capacity_section))
        return rendered(sections, output_format, metadata)
    held = _open_transactions_text(rows)
    notes = [*_notes(sections[0].rows, metadata), *([held] if held else [])]
    return "\n\n".join([render(sections, output_format, metadata), *notes])


def _notes(rows: Rows, metadata: Mapping[str, Any]) -> list[str]:
    verdicts = words_in(rows, "verdict")
    if not verdicts:
        return [nothing("No partition is owned or committed by the groups asked for.", metadata)]
    known: Mapping[str, str] = metadata["verdicts"]
    notes = ["\n".join(f"{word}: {text}" for word, text in known.items() if word in verdicts)]
    if metadata.get("unread_topics"):
        topics = ", ".join(metadata["unread_topics"])
        notes.append(f"Topics that no group is known to read: {topics}")
    return notes


def lag_section(rows: pa.Table) -> Section:
    """Return the rows of the table `lag`."""
    shown = rows.append_column("time_lag", _durations(rows, "time_lag"))
    shown = shown.append_column("drain", _durations(rows, "drain"))
    shown = shown.append_column("loss_in", _durations(rows, "loss_in"))
    also = [name for name in rows.column_names if name not in _HEADS]
    return Section(_marked(shown), _HEADS, also, name="lag", problem="is_problem", spare=_SPARE)


def _open_transactions_text(rows: Rows) -> str | None:
    """Return a sentence on partitions where a transaction is open; None where none is."""
    places = {
        f"{each['topic']}-{each['partition']} at {each['last_stable_offset']}"
        for piece in rows.pieces([*_OPEN, "log_end_offset"])
        for each in _open_in(piece)
    }
    if not places:
        return None
    named = sorted(places)
    more = f" and {len(named) - _MOST_NAMED} more" if len(named) > _MOST_NAMED else ""
    return (
        "A transaction is open: groups that read committed records only are given nothing from "
        f"{', '.join(named[:_MOST_NAMED])}{more} on. LAG counts to the end of the log, "
        "LAG-COMMITTED (--wide) to there."
    )


def _open_in(rows: pa.Table) -> list[dict[str, Any]]:
    """Return places of which readers of committed records cannot read all, each once."""
    is_open = pc.less(rows["last_stable_offset"], rows["log_end_offset"])
    found: list[dict[str, Any]] = (
        rows.filter(is_open).select(_OPEN).group_by(_OPEN).aggregate([]).to_pylist()
    )
    return found


def _sum_section(rows: pa.Table, by: str) -> Section:
    """Return lag added up by group, topic or member."""
    heads = {name: head for name, head in _KEY_HEADS.items() if name in rows.column_names}
    sums = dict(_SUM_HEADS)
    if by == "topic":
        sums = {"groups": "#GROUPS", **sums, "once_readers": "ONCE", "readers": "READERS"}
    if by == "group":
        sums |= {"members": "#MEMBERS", "useful_members": "USEFUL", "needed_members": "NEEDED"}
    spare = ("unknown_lag", "stale_lag", "max_lag", "once_readers")
    heads |= sums
    return Section(_marked(rows), heads, name="lag", problem="is_problem", spare=spare)


def _capacity_section(capacity: pa.Table) -> Section:
    """Return how many members groups have and could use."""
    heads = {
        name: name.upper().replace("_", "-") for name in capacity.column_names if name not in MARKS
    }
    name = "group_capacity"
    return Section(capacity, heads, MARKS, name=name, key=name, is_marked=True)


def _growth_section(growth: pa.Table) -> Section:
    """Return how lags grew since an earlier dump."""
    return Section(growth, _GROWTH_HEADS, name="lag_growth", key="lag_growth", spare=_GROWTH_SPARE)


def _readers_section(readers: pa.Table) -> Section:
    """Return which groups read which topics."""
    name = "topic_readers"
    return Section(readers, _READERS_HEADS, MARKS, name=name, key=name, is_marked=True)


def _history_section(statuses: pa.Table) -> Section:
    """Return when statuses changed."""
    name = "status_history"
    return Section(statuses, _HISTORY_HEADS, MARKS, name=name, key=name, is_marked=True)


def moves_section(moves: pa.Table) -> Section:
    """Return steps back and jumps forward."""
    return Section(moves, _MOVES_HEADS, name="offset_moves", key="offset_moves", spare=_MOVE_SPARE)


def _durations(rows: pa.Table, name: str) -> pa.Array:
    """Return what people read: a duration, with its sign where it is a bound or an estimate."""
    texts = [
        _NEVER
        if bound == _NEVER
        else None
        if length is None
        else _DUE
        if length < 0
        else _SIGNS.get(bound, "") + str(duration(length))
        for length, bound in zip(
            rows[f"{name}_ms"].to_pylist(), rows[f"{name}_bound"].to_pylist(), strict=True
        )
    ]
    return pa.array(texts, pa.string())


def _marked(rows: pa.Table) -> pa.Table:
    is_sound = pc.or_(pc.is_in(rows["verdict"], pa.array(_SOUND)), pc.is_null(rows["verdict"]))
    return rows.append_column("is_problem", pc.invert(is_sound))
