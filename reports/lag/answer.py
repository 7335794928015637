"""The answer of `lag`: partitions or sums, what is shown beside them, and what verdicts mean."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import pyarrow as pa

from reports.lag.rows import (
    capacity_section,
    growth_section,
    history_section,
    lag_section,
    moves_section,
    open_transactions_text,
    readers_section,
    sum_section,
)
from reports.layout.nothing import nothing
from reports.layout.output_format import OutputFormat
from reports.row_formats import Section, Text, render, rendered


def lag_text(
    tables: Mapping[str, pa.Table],
    figures: Mapping[str, pa.Table],
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
    sections = [lag_section(rows) if sums is None else sum_section(sums, by)]
    if "lag_growth" in tables:
        sections.append(growth_section(tables["lag_growth"]))
    if with_history:
        sections.append(history_section(tables["status_history"]))
        if tables["offset_moves"].num_rows or output_format.is_for_programs:
            sections.append(moves_section(tables["offset_moves"]))
    if output_format.is_for_programs:
        if by == "topic":
            sections.append(readers_section(tables["topic_readers"]))
        if by == "group":
            sections.append(capacity_section(tables["group_capacity"]))
        return rendered(sections, output_format, metadata)
    held = open_transactions_text(rows)
    notes = [*_notes(sections, metadata), *([held] if held else [])]
    return "\n\n".join([render(sections, output_format, metadata), *notes])


def _notes(sections: Sequence[Section], metadata: Mapping[str, Any]) -> list[str]:
    verdicts = set(sections[0].rows["verdict"].to_pylist())
    if not verdicts:
        return [nothing("No partition is owned or committed by the groups asked for.", metadata)]
    known: Mapping[str, str] = metadata["verdicts"]
    notes = ["\n".join(f"{word}: {text}" for word, text in known.items() if word in verdicts)]
    if metadata.get("unread_topics"):
        topics = ", ".join(metadata["unread_topics"])
        notes.append(f"Topics that no group is known to read: {topics}")
    return notes
