"""An incident as sections of text, CSV, Markdown or JSON."""

from __future__ import annotations

from collections.abc import Iterator

import pyarrow as pa

from reports.incident.page import Incident
from reports.layout.section import raw_section
from reports.printed_times import times
from reports.row_formats import Section
from reports.timeline.events import HEADS as EVENT_HEADS
from reports.timeline.events import event_rows
from reports.timeline.verdicts import raw_verdicts, verdict_section

_CHANGES = {
    "group_id": "GROUP",
    "topic": "TOPIC",
    "partition": "PARTITION",
    "change": "CHANGE",
    "from_committed_offset": "BEFORE",
    "to_committed_offset": "AFTER",
    "difference": "DIFFERENCE",
    "cause": "CAUSE",
}
_OWNERS = {
    "group_id": "GROUP",
    "topic": "TOPIC",
    "client_id": "CLIENT-ID",
    "member_id": "MEMBER-ID",
    "before": "BEFORE",
    "after": "AFTER",
}
_CLUSTER = {"at": "AT", "event": "EVENT", "broker": "BROKER"}
_OTHERS = {
    "group_id": "GROUP",
    "is_same_coordinator": "SAME-COORDINATOR",
    "partitions": "PARTITIONS",
    "verdicts": "WHAT",
    "first_at": "FIRST-AT",
}


def sections_of(incident: Incident, output_format: str) -> list[Section]:
    """Return the sections: what happened first, then what shows it."""
    if output_format in {"json", "csv"}:
        return list(_raw(incident))
    is_wide = getattr(output_format, "is_wide", False)
    told = verdict_section(incident.verdicts.to_pylist(), is_wide=is_wide)
    asked = getattr(output_format, "table", None)
    found = [told, *_beside(incident)]
    # People are shown tables that have rows, and the one that they ask for.
    return [each for each in found if each.rows.num_rows or each.name == asked]


def _raw(incident: Incident) -> Iterator[Section]:
    yield raw_verdicts(incident.verdicts)
    for name in ("changes", "owners", "events", "cluster", "others"):
        yield raw_section(incident.tables()[name], name)


def _beside(incident: Incident) -> Iterator[Section]:
    yield Section(incident.changes, _CHANGES, name="changes", title="Offsets before and after")
    yield Section(incident.owners, _OWNERS, name="owners", title="Who owned what")
    events = event_rows(incident.events)
    yield Section(events, EVENT_HEADS, name="events", title="Events in order", spare=["record"])
    yield _timed(incident.cluster, "at", _CLUSTER, "cluster", "What brokers did meanwhile")
    yield _timed(incident.others, "first_at", _OTHERS, "others", "Others that suffered at once")


def _timed(rows: pa.Table, time: str, heads: dict[str, str], name: str, title: str) -> Section:
    place = rows.column_names.index(time)
    return Section(rows.set_column(place, time, times(rows[time])), heads, name=name, title=title)
