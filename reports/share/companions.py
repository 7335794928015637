"""Rows of the tables beside the backlog of share groups as they are shown."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import pyarrow as pa
import pyarrow.compute as pc

from reports.row_formats import Section

if TYPE_CHECKING:
    from collections.abc import Mapping

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
    return _section(rows, _COUNTS, "delivery_counts", problem="is_problem")


def archived_section(rows: pa.Table) -> Section:
    """Return the rows of the table `share_archived_ranges`."""
    return _section(rows, _ARCHIVED, "archived", spare=("record_offset", "archived_bound"))


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
    return _section(rows, _FAULTS, "faults", title="Faults", problem="is_problem")


def prunable_section(rows: pa.Table) -> Section:
    """Return the rows of the table `share_prunable`."""
    return _section(rows, _PRUNABLE, "prunable", spare=("held_since", "log_start_offset"))


def _section(
    rows: pa.Table,
    heads: Mapping[str, str],
    name: str,
    *,
    title: str = "",
    problem: str | None = None,
    spare: tuple[str, ...] = (),
) -> Section:
    also = [each for each in rows.column_names if each not in heads and each != problem]
    return Section(
        rows, heads, also, name=name, key=name, title=title, problem=problem, spare=spare
    )
