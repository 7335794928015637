"""The answer of `share`: the backlog, and what is wrong besides; the rest where it is asked for."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc

from reports.layout.output_format import OutputFormat
from reports.row_formats import Section, Text, render, rendered
from reports.share.companions import (
    archived_section,
    count_section,
    fault_section,
    limit_section,
    not_kept,
    out_of_order,
    prunable_section,
    stalls_section,
    step_section,
)
from reports.share.notes import share_notes
from reports.share.rows import backlog_section, sum_section, table_section

_COMPANIONS: Final = {
    "share_stalls": stalls_section,
    "share_delivery_counts": count_section,
    "share_archived_ranges": archived_section,
    "share_faults": fault_section,
    "share_steps": step_section,
    "share_limits": limit_section,
    "share_prunable": prunable_section,
}
"""The tables beside the backlog, and how they are shown."""
_NO_LAG: Final = (
    "LAG and LEFT are - where it is not known where the log ends; --end-offsets FILE tells it, or "
    "the data topics' log directories beside the dump do."
)


def share_text(
    tables: Mapping[str, pa.Table],
    figures: Mapping[str, Any],
    output_format: OutputFormat,
    metadata: Mapping[str, Any],
    *,
    by: str,
    with_history: bool,
) -> Text:
    """Return the answer as text.

    Args:
        tables: Of the question, by name.
        figures: `sums` where the backlog is added up; `as_of`, the instant; `no_end`, the reason of
            rows for which it is not known where the log ends.
        output_format: The format.
        metadata: What JSON has beside the tables.
        by: What the backlog is added up by.
        with_history: Show people when share partitions stood still before, too.
    """
    rows, no_end = tables["share_backlog"], figures["no_end"]
    if "sums" in figures:
        backlog = sum_section(figures["sums"], by)
    elif output_format.is_for_programs:
        backlog = table_section(rows)
    else:
        backlog = backlog_section(rows, figures["as_of"], (no_end,))
    beside = [show(tables[name]) for name, show in _COMPANIONS.items()]
    if output_format.is_for_programs:
        return rendered([backlog, *beside], output_format, metadata)
    asked = output_format.table
    if not asked:
        beside = _wrong(beside, tables, with_history=with_history)
    sections = [backlog, *beside]
    notes = share_notes(sections, metadata, asked)
    if pc.any(pc.equal(rows["reason"], no_end)).as_py():
        notes.append(_NO_LAG)
    if not rows.num_rows and not asked:
        return "\n\n".join(notes)
    return "\n\n".join([render(sections, output_format, metadata), *notes])


def _wrong(
    beside: list[Section], tables: Mapping[str, pa.Table], *, with_history: bool
) -> list[Section]:
    """Return the tables with what is wrong; people see the rest where they ask for it."""
    wrong = {
        "limits": limit_section(not_kept(tables["share_limits"])),
        "steps": step_section(out_of_order(tables["share_steps"])),
    }
    names = {"faults", *wrong, *(["stalls"] if with_history else [])}
    sections = (wrong.get(each.name, each) for each in beside)
    return [each for each in sections if each.name in names and each.rows.num_rows]
