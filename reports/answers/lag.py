"""The answer of `lag`: partitions or sums, what is shown beside them, and what verdicts mean."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc

from reports.layout.output_format import OutputFormat
from reports.layout.section import (
    MARKS,
    LongSection,
    Rows,
    as_main,
    scanned,
    table_section,
)
from reports.plain_text import nothing, paragraphs
from reports.row_formats import Section, ShownTables, Text, render, rendered, shown_tables

_SOUND: Final = ("caught_up", "moving", "behind", "idle", "stale")
"""Verdicts that need nobody's attention by themselves."""
_OPEN: Final = ("topic", "partition", "last_stable_offset")
_MOST_NAMED: Final = 5
_MAIN: Final = "lag"
_BESIDE: Final = {"topic": "topic_readers", "group": "group_capacity"}
"""Tables that are there where lag is added up; people are shown them where they ask for them."""
_PROBLEM: Final = "is_problem"
_LAG_BOUND: Final = "lag_bound"
_LEFT_OUT: Final = (
    ">=: LAG is at least so much. It leaves out partitions whose lag is not known, or whose "
    "committed offset is beyond the end of the log; UNKNOWN (with --wide where it has no room) "
    "counts them."
)


def lag_text(
    tables: Mapping[str, Rows],
    figures: Mapping[str, Rows],
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
    is_asked = output_format.is_for_programs or output_format.table is not None
    if sums is None:
        sections = [LongSection(rows, lag_section)]
    else:
        sections = [LongSection(sums, partial(_sum_section, by=by))]
    if "lag_growth" in tables:
        sections.append(LongSection(tables["lag_growth"], _growth_section))
    if with_history:
        sections.append(LongSection(tables["status_history"], _beside("status_history")))
        if tables["offset_moves"].num_rows or is_asked:
            sections.append(LongSection(tables["offset_moves"], moves_section))
    if by in _BESIDE and is_asked:
        sections.append(LongSection(tables[_BESIDE[by]], _beside(_BESIDE[by])))
    if output_format.is_for_programs:
        return rendered(sections, output_format, metadata)
    if not output_format.has(_MAIN):
        return render(sections, output_format, metadata)
    held = _open_transactions_text(rows)
    shown = shown_tables(sections, output_format)
    leaves_out = sums is not None and any(
        pc.any(pc.greater(each["unknown_lag"], 0)).as_py()
        for each in scanned(sums, ["unknown_lag"])
    )
    notes = [
        *_notes(shown, sections[0].rows.num_rows, metadata, output_format.width),
        *([paragraphs([_LEFT_OUT], output_format.width)] if leaves_out else []),
        *([paragraphs([held], output_format.width)] if held else []),
    ]
    return "\n\n".join([shown.text, *notes])


def _notes(tables: ShownTables, count: int, metadata: Mapping[str, Any], width: int) -> list[str]:
    """Return paragraphs: what the verdicts mean that are shown, and topics without a reader.

    Args:
        tables: What is shown.
        count: How many rows the main table has.
        metadata: What is said beside it.
        width: How many columns a line has.
    """
    if not count:
        return [
            nothing("No partition is owned or committed by the groups asked for.", metadata, width)
        ]
    legend = tables.legend(_MAIN, "verdict", metadata["verdicts"])
    notes = [paragraphs(legend, width)] if legend else []
    if metadata.get("unread_topics"):
        topics = ", ".join(metadata["unread_topics"])
        notes.append(paragraphs([f"Topics that no group is known to read: {topics}"], width))
    return notes


def lag_section(rows: pa.Table) -> Section:
    """Return the rows of the table `lag`."""
    return as_main(table_section(_marked(rows), "lag", problem=_PROBLEM))


def _open_transactions_text(rows: Rows) -> str | None:
    """Return a sentence on partitions where a transaction is open; None where none is."""
    places = {
        f"{each['topic']}-{each['partition']} at {each['last_stable_offset']}"
        for piece in scanned(rows, [*_OPEN, "log_end_offset"])
        for each in _open_in(piece)
    }
    if not places:
        return None
    named = sorted(places)
    more = f" and {len(named) - _MOST_NAMED} more" if len(named) > _MOST_NAMED else ""
    return (
        "A transaction is open: groups that read committed records only are given nothing from "
        f"{', '.join(named[:_MOST_NAMED])}{more} on. LAG counts to the end of the log, "
        "LAG-COMMITTED (--wide) to there."
    )


def _open_in(rows: pa.Table) -> list[dict[str, Any]]:
    """Return places of which readers of committed records cannot read all, each once."""
    is_open = pc.less(rows["last_stable_offset"], rows["log_end_offset"])
    found: list[dict[str, Any]] = (
        rows.filter(is_open).select(_OPEN).group_by(_OPEN).aggregate([]).to_pylist()
    )
    return found


def _sum_section(rows: pa.Table, by: str) -> Section:
    """Return lag added up by group, topic or member."""
    also = (_LAG_BOUND,)
    section = table_section(_marked(rows), "lag", view=by, problem=_PROBLEM, also=also)
    return replace(as_main(section), bounds=dict.fromkeys(("lag", "max_lag"), _LAG_BOUND))


def _beside(table: str) -> Callable[[pa.Table], Section]:
    """Return what makes a section of a table that stands beside the main one."""
    return partial(table_section, of=table, also=MARKS)


def _growth_section(growth: pa.Table) -> Section:
    """Return how lags grew since an earlier dump."""
    return table_section(growth, "lag_growth", also=())


def moves_section(moves: pa.Table) -> Section:
    """Return steps back and jumps forward."""
    return table_section(moves, "offset_moves", also=())


def _marked(rows: pa.Table) -> pa.Table:
    is_sound = pc.or_(pc.is_in(rows["verdict"], pa.array(_SOUND)), pc.is_null(rows["verdict"]))
    return rows.append_column(_PROBLEM, pc.invert(is_sound))
