"""The answer of `share`: the backlog, and what is wrong besides; the rest where it is asked for.

Below the rows: what words mean, and what is assumed.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any, Final, Protocol

import polars as pl
import pyarrow as pa
import pyarrow.compute as pc

from reports.layout.cells import with_values
from reports.layout.output_format import OutputFormat
from reports.layout.section import (
    ROWS,
    LongSection,
    Rows,
    Section,
    as_main,
    heads_of,
    raw_section,
    scanned,
    table_section,
    unmarked,
    without,
)
from reports.plain_text import duration, nothing, paragraphs
from reports.row_formats import ShownTables, Text, rendered, shown_tables
from schemas import CONSUMER_OFFSETS
from schemas.catalog import broken_chain_words, odd_chain_words, reading_words

if TYPE_CHECKING:
    from datetime import datetime

# `--dialect`: rows of share state as designs of Kafka had it, as they are shown.

MAIN: Final = "share_partitions"
TABLES: Final = (MAIN, "share_batches", "share_checkpoints", "chain", "share_readings")
"""In the order in which they are shown."""
_TITLES: Final = {
    MAIN: "Share partitions",
    "share_batches": "Ranges of offsets in flight",
    "share_checkpoints": "Share checkpoint offsets, and what a cleaner may remove",
    "chain": "Checkpoints and deltas, each with the offsets after it",
    "share_readings": "Records in two readings: state, snapshot epoch, start offset; "
    "snapshot, state, leader epoch, start offset",
}
_NO_READING: Final = ("no_text", "epoch_beyond_31_bits", "no_snapshot", "other_snapshot")
_AS_TEXT: Final = ("state_epoch", "snapshot_epoch", "start_offset")
_AS_RELEASED: Final = tuple(
    f"released_{name}" for name in ("snapshot_epoch", "state_epoch", "leader_epoch", "start_offset")
)


def dialect_sections(tables: Mapping[str, pa.Table], *, is_for_programs: bool) -> list[Section]:
    """Return the tables in order; what is empty is left out for people, but for the first."""
    if is_for_programs:
        raw = [raw_section(tables[name], name) for name in TABLES if name in tables]
        first = raw[0]
        return [Section(first.rows, first.heads, name=MAIN, key=ROWS), *raw[1:]]
    return [
        _section(name, tables[name])
        for name in TABLES
        if name in tables and (name == MAIN or tables[name].num_rows)
    ]


def dialect_notes(tables: Mapping[str, pa.Table], width: int) -> str:
    """Return what the words mean that are in the tables, and nothing where there are none."""
    meanings = {**broken_chain_words(), **odd_chain_words(), **reading_words()}
    told = [tables[name]["reason"] for name in ("chain", "share_readings") if name in tables]
    there = {word for each in told for word in pc.unique(each).to_pylist()}
    lines = (f"{word}: {text}" for word, text in meanings.items() if word in there)
    return paragraphs(lines, width)


def _section(name: str, rows: pa.Table) -> Section:
    is_problem = {
        "chain": lambda: pc.invert(rows["ok"]),
        "share_readings": lambda: pc.is_in(rows["reason"], pa.array(_NO_READING)),
        "share_batches": lambda: pa.array([False] * rows.num_rows, pa.bool_()),
    }.get(name, lambda: pc.invert(rows["complete"]))()
    shown = rows.append_column("is_problem", is_problem)
    if name == "share_readings":
        shown = shown.append_column("text", _reading(rows, "text", _AS_TEXT))
        shown = shown.append_column("released", _reading(rows, "release", _AS_RELEASED))
    if name in ("chain", "share_readings"):
        shown = with_values(shown, "ok", pc.if_else(rows["ok"], "yes", "no"))
    section = table_section(shown, name, title=_TITLES[name], problem="is_problem", also=())
    if name == MAIN:
        section = replace(section, key=ROWS)
    is_short = "missing" in section.heads and rows["missing"].null_count == rows.num_rows
    return without(section, ["missing"]) if is_short else section


def _reading(rows: pa.Table, which: str, names: Sequence[str]) -> pa.ChunkedArray:
    """Return a reading in one column; null where it does not fit."""
    fits = pc.is_in(rows["fits"], pa.array([which, "both"]))
    numbers = [pc.fill_null(rows[name].cast(pa.string()), "-") for name in names]
    is_told = pc.and_(fits, pc.not_equal(rows["kind"], "tombstone"))
    return pc.if_else(is_told, pc.binary_join_element_wise(*numbers, " "), None)


_OUT_OF_ORDER: Final = "out_of_order"
_LIMIT_PROBLEMS: Final = ("exceeded", "out_of_bounds", "differs")


_NO_LAG: Final = (
    "LAG and LEFT are - where it is not known where the log ends; --end-offsets FILE tells it, or "
    "the data topics' log directories beside the dump do."
)

_SOUND: Final = (
    *("caught_up", "moving", "behind", "idle", "not_started", "initializing", "deleting"),
)
"""Statuses that need nobody's attention by themselves."""
_BACKLOG: Final = "share_backlog"
_BLOCKING: Final = (
    *("blocking_first_offset", "blocking_last_offset", "blocking_state"),
    "blocking_delivery_count",
)

_WITHOUT_LIMITS = ("prunable", "limits", "steps")
"""Tables that no setting has a say in, or that name them themselves."""
_LAG_BOUND: Final = "lag_bound"
_NOTHING = "No share group asked for has partitions."


class PickedRows(Rows, Protocol):
    """Rows of which some can be picked."""

    def where(self, condition: pl.Expr) -> PickedRows:
        """Return those that fulfil a condition."""


def share_text(
    tables: Mapping[str, PickedRows],
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
        backlog = LongSection(figures["sums"], partial(_sum_section, by=by))
    elif output_format.is_for_programs:
        backlog = LongSection(rows, _table_section)
    else:
        show = partial(_backlog_section, as_of=figures["as_of"], said_once=(no_end,))
        backlog = LongSection(rows, partial(show, with_remarks=_has_remarks(rows, (no_end,))))
    asked, is_for_programs = output_format.table, output_format.is_for_programs
    if asked or is_for_programs:
        beside = [LongSection(tables[name], make) for name, make in _COMPANIONS.items()]
    else:
        beside = _wrong(tables, with_history=with_history)
    sections = [backlog, *beside]
    if is_for_programs:
        return rendered(sections, output_format, metadata)
    shown = shown_tables(sections, output_format)
    notes = _share_notes(shown, metadata, asked, output_format.width)
    if not backlog.rows.num_rows:
        notes = [nothing(_NOTHING, metadata, output_format.width)]
    if any(pc.any(pc.equal(each["reason"], no_end)).as_py() for each in scanned(rows, ["reason"])):
        notes.append(paragraphs([_NO_LAG], output_format.width))
    if not rows.num_rows and not asked:
        return "\n\n".join(notes)
    return "\n\n".join([shown.text, *notes])


def _wrong(tables: Mapping[str, PickedRows], *, with_history: bool) -> list[LongSection]:
    """Return the tables with what is wrong; people see the rest where they ask for it."""
    wrong = {
        **({"share_stalls": tables["share_stalls"]} if with_history else {}),
        "share_faults": tables["share_faults"],
        "share_steps": tables["share_steps"].where(pl.col("verdict") == _OUT_OF_ORDER),
        "share_limits": tables["share_limits"].where(pl.col("verdict").is_in(_LIMIT_PROBLEMS)),
    }
    return [LongSection(rows, _COMPANIONS[name]) for name, rows in wrong.items() if rows.num_rows]


_REMARKED: Final = (
    *("missing", "reason", "status", "lag", "records_left", "is_later_partition"),
    "offsets_below_first",
)


def _has_remarks(rows: Rows, said_once: Sequence[str]) -> bool:
    """Return whether something is to be said beside any row."""
    remarks = (_remarks(each, said_once) for each in scanned(rows, _REMARKED))
    return any(each.null_count < len(each) for each in remarks)


def _remarks(rows: pa.Table, said_once: Sequence[str]) -> pa.ChunkedArray:
    """Return what is said beside rows of the table `share_backlog`: of them `_REMARKED`."""
    # Where only Kafka's count is missing, the number beside it has what it is about.
    is_told = pc.and_(pc.is_valid(rows["records_left"]), pc.is_null(rows["lag"]))
    passed_over = pc.and_(rows["is_later_partition"], pc.greater(rows["offsets_below_first"], 0))
    is_told = pc.and_(is_told, pc.invert(pc.fill_null(passed_over, fill_value=False)))
    is_below = pc.is_in(rows["reason"], pa.array(said_once, pa.string()))
    is_said = pc.or_(pc.or_(is_told, is_below), pc.equal(rows["status"], "not_started"))
    return pc.coalesce(rows["missing"], pc.if_else(is_said, None, rows["reason"]))


def _backlog_section(
    rows: pa.Table, as_of: datetime, said_once: Sequence[str], *, with_remarks: bool
) -> Section:
    """Return rows of the table `share_backlog`.

    Args:
        rows: The rows.
        as_of: The instant, up to which things last.
        said_once: Reasons that are said below the table, and not beside each row.
        with_remarks: Something is said beside a row, of these or others.
    """
    told = rows.select([*_BLOCKING, "stalled_since", "stalled_bound"]).to_pylist()
    window = pc.binary_join_element_wise(
        rows["window_offsets"].cast(pa.string()), rows["max_record_locks"].cast(pa.string()), "/"
    )
    shown = (
        rows.append_column("blocking", pa.array(map(_blocking, told), pa.string()))
        .append_column("stalled", pa.array((_stalled(each, as_of) for each in told), pa.string()))
        .append_column("window", window)
        .append_column("remark", _remarks(rows, said_once))
    )
    section = as_main(table_section(_marked(shown), _BACKLOG, "backlog", problem="is_problem"))
    return section if with_remarks else without(section, ["remark"])


def _table_section(rows: pa.Table) -> Section:
    """Return the rows of the table `share_backlog` as they are, for programs."""
    heads = {name: heads_of(_BACKLOG).get(name, name) for name in rows.column_names}
    return Section(_marked(rows), heads, name="backlog", problem="is_problem")


def _sum_section(rows: pa.Table, by: str) -> Section:
    """Return the backlog added up by group or topic."""
    also = (_LAG_BOUND,)
    section = table_section(
        _marked(rows), _BACKLOG, "backlog", view=by, problem="is_problem", also=also
    )
    return replace(as_main(section), bounds={"lag": _LAG_BOUND})


def _blocking(row: dict[str, Any]) -> str | None:
    first, last, state, count = (row[name] for name in _BLOCKING)
    if first is None:
        return None
    which = str(first) if first == last else f"{first}-{last}"
    words = {"AVAILABLE": "", "NOT_STORED": " not stored"}.get(state, f" {state}")
    return f"{which}{words}" + (f" x{count}" if count is not None else "")


def _stalled(row: dict[str, Any], as_of: datetime) -> str | None:
    since = row["stalled_since"]
    if since is None:
        return None
    lasted_ms = max(round((as_of - since).total_seconds() * 1000), 0)
    if row["stalled_bound"] == "at_latest":
        return f">= {duration(lasted_ms)}" if lasted_ms else None
    return duration(lasted_ms)


def _marked(rows: pa.Table) -> pa.Table:
    is_sound = pc.is_in(rows["status"], pa.array(_SOUND))
    return rows.append_column("is_problem", pc.invert(is_sound))


def _share_notes(
    tables: ShownTables, said: Mapping[str, Any], asked: str | None, width: int
) -> list[str]:
    """Return paragraphs: what the words that are shown mean, and which settings are assumed.

    Args:
        tables: What is shown.
        said: What is said beside it.
        asked: The one table that was asked for; None for all.
        width: How many columns a line has.
    """
    legend = [
        *tables.legend("backlog", "status", said["statuses"]),
        *tables.legend("faults", "fault", said["fault_words"]),
        *tables.legend("steps", "verdict", said["step_verdicts"]),
        *tables.legend("limits", "verdict", said["limit_verdicts"]),
    ]
    assumed = [each for each in said["settings"] if each.endswith("assumed)")]
    notes = [legend, assumed if asked not in _WITHOUT_LIMITS else []]
    return [paragraphs(each, width) for each in notes if each]


def _count_section(rows: pa.Table) -> Section:
    """Return the rows of the table `share_delivery_counts`; those on their last try are marked."""
    is_last = pc.fill_null(pc.less_equal(rows["deliveries_left"], 1), fill_value=False)
    rows = rows.append_column("is_problem", is_last)
    return table_section(rows, "share_delivery_counts", "delivery_counts", problem="is_problem")


def _archived_section(rows: pa.Table) -> Section:
    """Return the rows of the table `share_archived_ranges`."""
    return table_section(rows, "share_archived_ranges", "archived")


def _fault_section(rows: pa.Table) -> Section:
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
    return table_section(rows, "share_faults", "faults", title="Faults", problem="is_problem")


def _stalls_section(rows: pa.Table) -> Section:
    """Return the rows of the table `share_stalls`; those that still stand are marked."""
    states, counts = (
        rows[name].to_pylist() for name in ("blocking_state", "blocking_delivery_count")
    )
    blocking = [
        state if count is None else f"{state} x{count}"
        for state, count in zip(states, counts, strict=True)
    ]
    shown = rows.append_column("blocking", pa.array(blocking, pa.string()))
    shown = shown.append_column("is_problem", pc.is_null(rows["until"]))
    return unmarked(
        table_section(shown, "share_stalls", "stalls", title="Stalls", problem="is_problem")
    )


def _step_section(rows: pa.Table) -> Section:
    """Return the rows of the table `share_steps`; those out of order are marked."""
    place = pc.binary_join_element_wise(
        *(rows[name].cast(pa.string()) for name in ("coordinator_partition", "began_offset")), "@"
    )
    record = pc.binary_join_element_wise(
        pa.repeat(CONSUMER_OFFSETS, rows.num_rows), place.combine_chunks(), "-"
    )
    rows = rows.append_column("record", record)
    rows = rows.append_column("is_problem", pc.equal(rows["verdict"], _OUT_OF_ORDER))
    return table_section(rows, "share_steps", "steps", title="Steps", problem="is_problem")


def _limit_section(rows: pa.Table) -> Section:
    """Return the rows of the table `share_limits`; those that are not kept are marked."""
    is_problem = pc.is_in(rows["verdict"], pa.array(_LIMIT_PROBLEMS))
    rows = rows.append_column("is_problem", is_problem)
    return table_section(rows, "share_limits", "limits", title="Limits", problem="is_problem")


def _prunable_section(rows: pa.Table) -> Section:
    """Return the rows of the table `share_prunable`."""
    return table_section(rows, "share_prunable", "prunable")


_COMPANIONS: Final = {
    "share_stalls": _stalls_section,
    "share_delivery_counts": _count_section,
    "share_archived_ranges": _archived_section,
    "share_faults": _fault_section,
    "share_steps": _step_section,
    "share_limits": _limit_section,
    "share_prunable": _prunable_section,
}
"""The tables beside the backlog, and how they are shown."""
