"""Events of a group as rows: when, what, to whom, and which record says so."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc

from reports.printed_times import times

HEADS = {
    "time": "TIME",
    "group_id": "GROUP",
    "event": "EVENT",
    "subject": "SUBJECT",
    "record": "RECORD",
    "detail": "DETAIL",
}
EVIDENCE = (
    *("log", "coordinator_partition", "record_offset", "leader_epoch", "copy", "segment"),
    "batch_position",
    *("complete", "missing"),
)
"""What finds the record again, for programs."""


def event_rows(events: pa.Table) -> pa.Table:
    """Return events in order with the columns of `HEADS`.

    Args:
        events: Rows of `group_events`. What has no time of its own is where its record is.
    """
    order = ["at", "log", "coordinator_partition", "record_offset", "event", "subject"]
    events = events.sort_by([(name, "ascending") for name in order])
    place = pc.binary_join_element_wise(
        events["log"], pc.cast(events["coordinator_partition"], pa.string()), "-"
    )
    record = pc.binary_join_element_wise(place, pc.cast(events["record_offset"], pa.string()), "@")
    return events.append_column("time", times(events["at"])).append_column("record", record)
