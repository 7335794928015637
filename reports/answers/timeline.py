"""The answer of `timeline`: verdicts on offsets, then the events, then what history is gone.

For people, partitions of which all is equal are one row. An event says when, what, to whom, and
which record says so.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from reports.layout.output_format import OutputFormat
from reports.layout.section import Section, raw_section
from reports.layout.sentences import nothing, paragraphs
from reports.printed_times import instants, times
from reports.quantities import ranges
from reports.row_formats import Text, render, rendered

_NOTHING = "Nothing happened in that time."

_VERDICTS = "verdicts"
VERDICT_HEADS = {
    "group_id": "GROUP",
    "topic": "TOPIC",
    "partitions": "PARTITIONS",
    "verdict": "VERDICT",
    "at": "AT",
    "was": "WAS",
    "became": "BECAME",
    "cost": "COST",
    "confidence": "CONFIDENCE",
    "record": "RECORD",
    "reason": "REASON",
}
"""The columns of verdicts; COST is records read again, or skipped where it is negative."""
_COLUMNS = (
    *(("group_id", pa.string()), ("topic", pa.string()), ("partition", pa.int32())),
    ("verdict", pa.string()),
    *((name, pa.timestamp("us", "UTC")) for name in ("at", "not_before")),
    *((name, pa.int64()) for name in ("was", "became", "cost")),
    *((name, pa.string()) for name in ("confidence", "record", "reason")),
)
_RAW = pa.schema(_COLUMNS)
_MERGED = pa.schema(
    [
        *(
            ("partitions", pa.string()) if name == "partition" else (name, kind)
            for name, kind in _COLUMNS
        ),
        ("went_wrong", pa.bool_()),
    ]
)
_NO_LOSS = "no loss found"
_HARMLESS = (_NO_LOSS, "never committed", "pending")
_Row = Mapping[str, Any]

EVENT_HEADS = {
    "time": "TIME",
    "group_id": "GROUP",
    "event": "EVENT",
    "subject": "SUBJECT",
    "record": "RECORD",
    "detail": "DETAIL",
}
_EVIDENCE = (
    *("log", "coordinator_partition", "record_offset", "leader_epoch", "copy", "segment"),
    "batch_position",
    *("complete", "missing"),
)
"""What finds the record again, for programs."""


def timeline_text(
    tables: Mapping[str, pa.Table],
    output_format: OutputFormat,
    metadata: Mapping[str, Any],
    *,
    note: str | None,
) -> Text:
    """Return the answer as text.

    Args:
        tables: `offset_verdicts` and `group_events`.
        output_format: The format.
        metadata: What JSON has beside the tables.
        note: What people are to know of the history besides.
    """
    verdicts = tables["offset_verdicts"]
    events = Section(
        event_rows(tables["group_events"]),
        EVENT_HEADS,
        _EVIDENCE,
        name="events",
        spare=["record"],
        is_marked=True,
    )
    if output_format.is_for_programs:
        return rendered([raw_verdicts(verdicts), events], output_format, metadata)
    there = [verdict_section(verdicts.to_pylist(), is_wide=output_format.is_wide), events]
    sections = [each for each in there if each.rows.num_rows]
    text = render(sections, output_format, metadata) or nothing(_NOTHING, metadata)
    return "\n\n".join([text, *([paragraphs([note])] if note else [])])


def verdict_section(rows: Iterable[_Row], *, is_wide: bool) -> Section:
    """Return verdicts as rows for people, in the order given.

    Args:
        rows: As the table `offset_verdicts` has them.
        is_wide: Whether there is room for the record of each partition.
    """
    heads = {name: head for name, head in VERDICT_HEADS.items() if is_wide or name != "record"}
    told = merged(rows, heads)
    marked = [each | {"went_wrong": not each["verdict"].startswith(_HARMLESS)} for each in told]
    table = pa.Table.from_pylist(marked, schema=_MERGED)
    place = table.column_names.index("at")
    return Section(
        table.set_column(place, "at", instants(table["at"], table["not_before"])),
        heads,
        name=_VERDICTS,
        key=_VERDICTS,
        problem="went_wrong",
        spare=["confidence"],
    )


def raw_verdicts(rows: pa.Table) -> Section:
    """Return verdicts for programs: a row for each partition.

    Args:
        rows: The table `offset_verdicts`.
    """
    return raw_section(rows.select(_RAW.names).cast(_RAW), _VERDICTS)


def merged(rows: Iterable[_Row], columns: Iterable[str] = VERDICT_HEADS) -> list[dict[str, Any]]:
    """Put partitions of a topic together whose verdicts are equal in every column shown.

    Since when no loss is found is said of a whole topic: it holds since the latest of the times of
    its partitions.

    Args:
        rows: Verdicts.
        columns: Those that are shown.
    """
    equal = [*(name for name in columns if name != "partitions"), "not_before"]
    together: dict[tuple[Any, ...], list[_Row]] = {}
    for row in _with_common_times(_said_once(list(rows))):
        together.setdefault(tuple(row[name] for name in equal), []).append(row)
    return [_one(each, equal) for each in together.values()]


def _said_once(rows: Sequence[_Row]) -> list[_Row]:
    """Leave out what is said of a partition and of its whole group alike."""
    names = ("group_id", "verdict", "at", "reason")
    whole = {tuple(row[name] for name in names) for row in rows if row["topic"] is None}
    return [
        row
        for row in rows
        if row["topic"] is None or tuple(row[name] for name in names) not in whole
    ]


def _with_common_times(rows: Sequence[_Row]) -> list[_Row]:
    latest: dict[tuple[Any, ...], _Row] = {}
    for row in rows:
        topic = row["group_id"], row["topic"]
        if _is_since(row) and (topic not in latest or latest[topic]["at"] < row["at"]):
            latest[topic] = row
    return [
        {**row, "verdict": latest[row["group_id"], row["topic"]]["verdict"], "at": None}
        if _is_since(row)
        else row
        for row in rows
    ]


def _is_since(row: _Row) -> bool:
    return bool(row["verdict"].startswith(_NO_LOSS) and row["at"] is not None)


def _one(rows: Sequence[_Row], columns: Iterable[str]) -> dict[str, Any]:
    numbers = [row["partition"] for row in rows if row["partition"] is not None]
    return {name: rows[0][name] for name in columns} | {"partitions": ranges(numbers)}


def event_rows(events: pa.Table) -> pa.Table:
    """Return events in order with the columns of `EVENT_HEADS`.

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
