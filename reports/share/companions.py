"""Rows of the tables beside the backlog of share groups as they are shown."""

from __future__ import annotations

from typing import Final

import pyarrow as pa
import pyarrow.compute as pc

from reports.layout.section import companion_section
from reports.quantities import duration
from reports.row_formats import Section
from schemas import CONSUMER_OFFSETS

_WHERE: Final = {"group_id": "GROUP", "topic": "TOPIC", "partition": "PARTITION"}
_COUNTS: Final = {
    **_WHERE,
    "delivery_count": "DELIVERY-COUNT",
    "delivery_state_name": "STATE",
    "records": "RECORDS",
    "deliveries_left": "DELIVERIES-LEFT",
}
_ARCHIVED: Final = {
    **_WHERE,
    "first_offset": "FIRST-OFFSET",
    "last_offset": "LAST-OFFSET",
    "delivery_count": "DELIVERY-COUNT",
    "cause": "CAUSE",
    "archived_at": "ARCHIVED-AT",
    "archived_bound": "BOUND",
    "record_offset": "RECORD",
}
_FAULTS: Final = {
    **_WHERE,
    "fault": "FAULT",
    "before": "BEFORE",
    "found": "FOUND",
    "at": "AT",
    "record": "RECORD",
}
_STALLS: Final = {
    **_WHERE,
    "kind": "KIND",
    "next_offset": "OFFSET",
    "duration": "STOOD",
    "since": "SINCE",
    "until": "UNTIL",
    "ended_by": "ENDED-BY",
    "blocking": "BLOCKING",
    "done_behind": "DONE-BEHIND",
    "since_bound": "BOUND",
    "record_offset": "RECORD",
}
_LIMITS: Final = {
    "setting": "SETTING",
    "group_id": "GROUP",
    "value": "VALUE",
    "source": "FROM",
    "least": "LEAST",
    "most": "MOST",
    "seen": "SEEN",
    "seen_of": "OF",
    "verdict": "VERDICT",
    "reason": "REASON",
    "kip_name": "IN-KIP-932",
}
_STEPS: Final = {
    **_WHERE,
    "act": "ACT",
    "verdict": "VERDICT",
    "began_at": "BEGAN",
    "took": "TOOK",
    "state_at": "STATE-AT",
    "ended_at": "ENDED",
    "reason": "REASON",
    "record": "RECORD",
}
OUT_OF_ORDER: Final = "out_of_order"
LIMIT_PROBLEMS: Final = ("exceeded", "out_of_bounds", "differs")
_PRUNABLE: Final = {
    "coordinator_partition": "PARTITION",
    "log_start_offset": "LOG-START-OFFSET",
    "log_end_offset": "LOG-END-OFFSET",
    "records": "RECORDS",
    "prunable_records": "PRUNABLE",
    "prunable_to": "BELOW",
    "held_by_group": "HELD-BY",
    "held_by_topic": "TOPIC",
    "held_by_partition": "OF-TOPIC",
    "held_since": "SINCE",
}


def count_section(rows: pa.Table) -> Section:
    """Return the rows of the table `share_delivery_counts`; those on their last try are marked."""
    is_last = pc.fill_null(pc.less_equal(rows["deliveries_left"], 1), fill_value=False)
    rows = rows.append_column("is_problem", is_last)
    return companion_section(rows, _COUNTS, "delivery_counts", problem="is_problem")


def archived_section(rows: pa.Table) -> Section:
    """Return the rows of the table `share_archived_ranges`."""
    return companion_section(rows, _ARCHIVED, "archived", spare=("record_offset", "archived_bound"))


def fault_section(rows: pa.Table) -> Section:
    """Return the rows of the table `share_faults`: each is a problem."""
    record = pc.binary_join_element_wise(
        rows["record_topic"],
        pc.binary_join_element_wise(
            *(rows[name].cast(pa.string()) for name in ("coordinator_partition", "record_offset")),
            "@",
        ),
        "-",
    )
    rows = rows.append_column("record", record)
    rows = rows.append_column("is_problem", pa.array([True] * rows.num_rows, pa.bool_()))
    return companion_section(rows, _FAULTS, "faults", title="Faults", problem="is_problem")


def stalls_section(rows: pa.Table) -> Section:
    """Return the rows of the table `share_stalls`; those that still stand are marked."""
    signs = {"at_latest": ">= "}
    bounds, lengths = rows["since_bound"].to_pylist(), rows["duration_ms"].to_pylist()
    stood = [
        None if length is None else signs.get(bound, "") + str(duration(length))
        for bound, length in zip(bounds, lengths, strict=True)
    ]
    states, counts = (
        rows[name].to_pylist() for name in ("blocking_state", "blocking_delivery_count")
    )
    blocking = [
        state if count is None else f"{state} x{count}"
        for state, count in zip(states, counts, strict=True)
    ]
    shown = rows.append_column("duration", pa.array(stood, pa.string()))
    shown = shown.append_column("blocking", pa.array(blocking, pa.string()))
    shown = shown.append_column("is_problem", pc.is_null(rows["until"]))
    heads = dict(_STALLS)
    also = [each for each in rows.column_names if each not in heads]
    return Section(
        shown,
        heads,
        also,
        name="stalls",
        key="stalls",
        title="Stalls",
        problem="is_problem",
        spare=("record_offset", "since_bound", "done_behind", "ended_by"),
    )


def out_of_order(rows: pa.Table) -> pa.Table:
    """Return the rows of `share_steps` that a person should look into."""
    return rows.filter(pc.equal(rows["verdict"], OUT_OF_ORDER))


def step_section(rows: pa.Table) -> Section:
    """Return the rows of the table `share_steps`; those out of order are marked."""
    place = pc.binary_join_element_wise(
        *(rows[name].cast(pa.string()) for name in ("coordinator_partition", "began_offset")), "@"
    )
    record = pc.binary_join_element_wise(
        pa.repeat(CONSUMER_OFFSETS, rows.num_rows), place.combine_chunks(), "-"
    )
    took = [None if each is None else duration(each) for each in rows["took_ms"].to_pylist()]
    rows = rows.append_column("record", record)
    rows = rows.append_column("took", pa.array(took, pa.string()))
    rows = rows.append_column("is_problem", pc.equal(rows["verdict"], OUT_OF_ORDER))
    spare = ("record", "ended_at", "state_at", "took")
    return companion_section(
        rows, _STEPS, "steps", title="Steps", problem="is_problem", spare=spare
    )


def not_kept(rows: pa.Table) -> pa.Table:
    """Return the rows of `share_limits` that a person should look into."""
    return rows.filter(pc.is_in(rows["verdict"], pa.array(LIMIT_PROBLEMS)))


def limit_section(rows: pa.Table) -> Section:
    """Return the rows of the table `share_limits`; those that are not kept are marked."""
    is_problem = pc.is_in(rows["verdict"], pa.array(LIMIT_PROBLEMS))
    rows = rows.append_column("is_problem", is_problem)
    spare = ("kip_name", "seen_of", "source", "least", "most")
    return companion_section(
        rows, _LIMITS, "limits", title="Limits", problem="is_problem", spare=spare
    )


def prunable_section(rows: pa.Table) -> Section:
    """Return the rows of the table `share_prunable`."""
    return companion_section(rows, _PRUNABLE, "prunable", spare=("held_since", "log_start_offset"))
