"""Rows of share state as designs of Kafka had it, as they are shown."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Final

import pyarrow as pa
import pyarrow.compute as pc

from reports.layout.section import ROWS, Section, raw_section
from reports.layout.sentences import paragraphs
from reports.layout.table_section import table_section, without
from schemas.catalog import broken_chain_words, odd_chain_words, reading_words

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


def dialect_notes(tables: Mapping[str, pa.Table]) -> str:
    """Return what the words mean that are in the tables, and nothing where there are none."""
    meanings = {**broken_chain_words(), **odd_chain_words(), **reading_words()}
    told = [tables[name]["reason"] for name in ("chain", "share_readings") if name in tables]
    there = {word for each in told for word in pc.unique(each).to_pylist()}
    return paragraphs(f"{word}: {text}" for word, text in meanings.items() if word in there)


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
        shown = shown.set_column(
            shown.schema.get_field_index("ok"), "ok", pc.if_else(rows["ok"], "yes", "no")
        )
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
