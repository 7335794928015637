"""The answer of `timeline`: verdicts on offsets, then the events, then what history is gone."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pyarrow as pa

from reports.layout.nothing import nothing
from reports.layout.output_format import OutputFormat
from reports.layout.paragraphs import paragraphs
from reports.row_formats import Section, Text, render, rendered
from reports.timeline.events import EVIDENCE, HEADS, event_rows
from reports.timeline.verdicts import raw_verdicts, verdict_section

_NOTHING = "Nothing happened in that time."


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
        HEADS,
        EVIDENCE,
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
