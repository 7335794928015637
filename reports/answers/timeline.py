"""The answer of `timeline`: verdicts on offsets, then the events, then what history is gone.

For people, partitions of which all is equal are one row. An event says when, what, to whom, and
which record says so.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from functools import partial
from typing import Any

import polars as pl
import pyarrow as pa
import pyarrow.compute as pc

from reports.answers.merged_verdicts import (
    RAW,
    MergedVerdicts,
    merged_rows,
    raw_rows,
    shown_rows,
)
from reports.answers.verdict_words import in_words
from reports.layout.output_format import OutputFormat
from reports.layout.section import ROWS, LongSection, Rows, Section, raw_section
from reports.layout.sentences import nothing, paragraphs
from reports.layout.table_section import heads_of, table_section
from reports.printed_times import instants, times
from reports.row_formats import Text, render, rendered
from schemas import table
from schemas.evaluation_rules import harmless_verdicts

_NOTHING = "Nothing happened in that time."

_VERDICTS = "verdicts"
_Row = Mapping[str, Any]

_EVIDENCE = (
    *("log", "coordinator_partition", "record_offset", "leader_epoch", "copy", "segment"),
    "batch_position",
    *("complete", "missing"),
)
"""What finds the record again, for programs."""


def timeline_text(
    tables: Mapping[str, Rows],
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
    events = LongSection(tables["group_events"], _events_section)
    if output_format.is_for_programs:
        return rendered([LongSection(verdicts, raw_verdicts), events], output_format, metadata)
    heads = _heads(is_wide=output_format.is_wide)
    shown = LongSection(MergedVerdicts(verdicts, list(heads)), partial(_verdicts_of, heads))
    sections = [each for each in (shown, events) if each.rows.num_rows]
    text = render(sections, output_format, metadata) or nothing(_NOTHING, metadata)
    return "\n\n".join([text, *([paragraphs([note])] if note else [])])


def _events_section(rows: pa.Table) -> Section:
    section = table_section(event_rows(rows), "group_events", "events", also=_EVIDENCE)
    return replace(section, key=ROWS)


def _heads(*, is_wide: bool) -> dict[str, str]:
    """Return the columns of verdicts; where there is room, the record of each partition.

    COST is records read again, or skipped where it is negative.
    """
    heads = heads_of("offset_verdicts")
    return {name: head for name, head in heads.items() if is_wide or name != "record"}


def verdict_section(rows: Iterable[_Row], *, is_wide: bool) -> Section:
    """Return verdicts as rows for people, in the order given.

    Args:
        rows: As the table `offset_verdicts` has them.
        is_wide: Whether there is room for the record of each partition.
    """
    heads = _heads(is_wide=is_wide)
    return _verdicts_of(heads, shown_rows(merged_rows(_raw(rows), list(heads))))


def _verdicts_of(heads: Mapping[str, str], rows: pa.Table) -> Section:
    """Return the section of rows of `MergedVerdicts`."""
    is_harmless = pc.is_in(rows["verdict"], pa.array(sorted(harmless_verdicts()), pa.string()))
    worded = in_words(rows)
    place = rows.column_names.index("at")
    return Section(
        worded.set_column(place, "at", instants(rows["at"], rows["not_before"])).append_column(
            "went_wrong", pc.invert(is_harmless)
        ),
        heads,
        name=_VERDICTS,
        key=_VERDICTS,
        problem="went_wrong",
        spare=table("offset_verdicts").view().spare,
    )


def raw_verdicts(rows: pa.Table) -> Section:
    """Return verdicts for programs: a row for each partition.

    Args:
        rows: The table `offset_verdicts`.
    """
    return raw_section(rows.select(RAW.names).cast(RAW), _VERDICTS)


def merged(rows: Iterable[_Row], columns: Iterable[str] | None = None) -> list[dict[str, Any]]:
    """Return `merged_rows` of verdicts that are given as dictionaries.

    Args:
        rows: Verdicts.
        columns: Those that are shown; by default all that may be.
    """
    shown = heads_of("offset_verdicts") if columns is None else columns
    return merged_rows(_raw(rows), list(shown)).to_dicts()


def _raw(rows: Iterable[_Row]) -> pl.DataFrame:
    return raw_rows(pa.Table.from_pylist(list(rows), RAW))


def event_rows(events: pa.Table) -> pa.Table:
    """Return events in order as people see them.

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
