"""Rows of the tables about lag as they are shown."""

from __future__ import annotations

from typing import Final

import pyarrow as pa
import pyarrow.compute as pc

from reports.quantities import duration
from reports.row_formats import Section

SOUND: Final = ("caught_up", "moving", "behind", "idle", "stale")
"""Verdicts that need nobody's attention by themselves."""

HEADS: Final = {
    "group_id": "GROUP",
    "topic": "TOPIC",
    "partition": "PARTITION",
    "verdict": "VERDICT",
    "status": "STATUS",
    "committed_offset": "CURRENT-OFFSET",
    "log_end_offset": "LOG-END-OFFSET",
    "lag": "LAG",
    "lost_offsets": "LOST",
    "time_lag": "TIME-LAG",
    "kind": "KIND",
    "last_advance_at": "LAST-ADVANCE",
    "log_start_offset": "LOG-START-OFFSET",
    "member_id": "CONSUMER-ID",
    "reason": "REASON",
}
_SPARE: Final = ("log_start_offset", "last_advance_at", "kind", "member_id", "log_end_offset")
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
_AT_LEAST: Final = "at_least"


def lag_section(rows: pa.Table) -> Section:
    """Return the rows of the table `lag`."""
    # A duration is what people read, with its sign where it is a bound.
    texts = [
        (">= " if bound == _AT_LEAST else "") + str(duration(lag)) if lag is not None else None
        for lag, bound in zip(
            rows["time_lag_ms"].to_pylist(), rows["time_lag_bound"].to_pylist(), strict=True
        )
    ]
    shown = rows.append_column("time_lag", pa.array(texts, pa.string()))
    also = [name for name in rows.column_names if name not in HEADS]
    return Section(_marked(shown), HEADS, also, name="lag", problem="is_problem", spare=_SPARE)


def sum_section(rows: pa.Table, by: str) -> Section:
    """Return lag added up by group, topic or member."""
    heads = {name: head for name, head in _KEY_HEADS.items() if name in rows.column_names}
    sums = dict(_SUM_HEADS)
    if by == "topic":
        sums = {"groups": "#GROUPS", **sums}
    return Section(_marked(rows), {**heads, **sums}, name="lag", problem="is_problem")


def history_section(statuses: pa.Table) -> Section:
    """Return when statuses changed."""
    return Section(statuses, _HISTORY_HEADS, name="status_history", key="status_history")


def _marked(rows: pa.Table) -> pa.Table:
    is_sound = pc.is_in(rows["verdict"], pa.array(SOUND))
    return rows.append_column("is_problem", pc.invert(is_sound))
