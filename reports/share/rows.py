"""Rows of the tables about the backlog of share groups as they are shown."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa
import pyarrow.compute as pc

from reports.quantities import duration
from reports.row_formats import Section

if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import datetime

SOUND: Final = (
    *("caught_up", "moving", "behind", "idle", "not_started", "initializing", "deleting"),
)
"""Statuses that need nobody's attention by themselves."""

HEADS: Final = {
    "group_id": "GROUP",
    "topic": "TOPIC",
    "partition": "PARTITION",
    "status": "STATUS",
    "start_offset": "START-OFFSET",
    "log_end_offset": "LOG-END-OFFSET",
    "lag": "LAG",
    "records_left": "LEFT",
    "in_flight": "IN-FLIGHT",
    "blocking": "BLOCKING",
    "stalled": "STALLED",
    "near_limit_count": "LAST-TRY",
    "archived_count": "ARCHIVED",
    "lost_offsets": "LOST",
    "offsets_beyond_end": "BEYOND",
    "members": "#MEMBERS",
    "window": "WINDOW",
    "remark": "REASON",
}
_SPARE: Final = (
    *("log_end_offset", "window", "members", "lost_offsets", "offsets_beyond_end", "in_flight"),
    *("records_left", "start_offset"),
)
_SUM_HEADS: Final = {
    "partitions": "#PARTITIONS",
    "status": "WORST-STATUS",
    "lag": "LAG",
    "unknown_lag": "UNKNOWN",
    "records_left": "LEFT",
    "in_flight": "IN-FLIGHT",
    "near_limit_count": "LAST-TRY",
    "archived_count": "ARCHIVED",
    "lost_offsets": "LOST",
    "offsets_beyond_end": "BEYOND",
    "stalled_since": "STALLED-SINCE",
}
_KEY_HEADS: Final = {"group_id": "GROUP", "topic": "TOPIC"}


def backlog_section(rows: pa.Table, as_of: datetime, said_once: Sequence[str] = ()) -> Section:
    """Return the rows of the table `share_backlog`.

    Args:
        rows: The rows.
        as_of: The instant, up to which things last.
        said_once: Reasons that are said below the table, and not beside each row.
    """
    told = rows.select([*_BLOCKING, "stalled_since", "stalled_bound"]).to_pylist()
    window = pc.binary_join_element_wise(
        rows["window_offsets"].cast(pa.string()), rows["max_record_locks"].cast(pa.string()), "/"
    )
    # Where only Kafka's count is missing, the number beside it has what it is about.
    is_told = pc.and_(pc.is_valid(rows["records_left"]), pc.is_null(rows["lag"]))
    passed_over = pc.and_(rows["is_later_partition"], pc.greater(rows["offsets_below_first"], 0))
    is_told = pc.and_(is_told, pc.invert(pc.fill_null(passed_over, fill_value=False)))
    is_below = pc.is_in(rows["reason"], pa.array(said_once, pa.string()))
    is_said = pc.or_(pc.or_(is_told, is_below), pc.equal(rows["status"], "not_started"))
    remark = pc.if_else(is_said, None, rows["reason"])
    shown = (
        rows.append_column("blocking", pa.array(map(_blocking, told), pa.string()))
        .append_column("stalled", pa.array((_stalled(each, as_of) for each in told), pa.string()))
        .append_column("window", window)
        .append_column("remark", pc.coalesce(rows["missing"], remark))
    )
    also = [name for name in rows.column_names if name not in HEADS]
    heads = dict(HEADS)
    if shown["remark"].null_count == shown.num_rows:
        del heads["remark"]
    return Section(_marked(shown), heads, also, name="backlog", problem="is_problem", spare=_SPARE)


def table_section(rows: pa.Table) -> Section:
    """Return the rows of the table `share_backlog` as they are, for programs."""
    heads = {name: HEADS.get(name, name) for name in rows.column_names}
    return Section(_marked(rows), heads, name="backlog", problem="is_problem")


def sum_section(rows: pa.Table, by: str) -> Section:
    """Return the backlog added up by group or topic."""
    heads = {name: head for name, head in _KEY_HEADS.items() if name in rows.column_names}
    sums = {"groups": "#GROUPS", **_SUM_HEADS} if by == "topic" else _SUM_HEADS
    return Section(_marked(rows), {**heads, **sums}, name="backlog", problem="is_problem")


_BLOCKING: Final = (
    *("blocking_first_offset", "blocking_last_offset", "blocking_state"),
    "blocking_delivery_count",
)


def _blocking(row: dict[str, Any]) -> str | None:
    first, last, state, count = (row[name] for name in _BLOCKING)
    if first is None:
        return None
    which = str(first) if first == last else f"{first}-{last}"
    words = {"AVAILABLE": "", "NOT_STORED": " not stored"}.get(state, f" {state}")
    return f"{which}{words}" + (f" x{count}" if count is not None else "")


def _stalled(row: dict[str, Any], as_of: datetime) -> str | None:
    since = row["stalled_since"]
    if since is None:
        return None
    lasted_ms = max(round((as_of - since).total_seconds() * 1000), 0)
    if row["stalled_bound"] == "at_latest":
        return f">= {duration(lasted_ms)}" if lasted_ms else None
    return duration(lasted_ms)


def _marked(rows: pa.Table) -> pa.Table:
    is_sound = pc.is_in(rows["status"], pa.array(SOUND))
    return rows.append_column("is_problem", pc.invert(is_sound))
