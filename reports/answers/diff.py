"""The differences of two states: one section for groups, offsets, members, share partitions."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc

from reports.layout.cells import with_times_as_text, with_values
from reports.layout.section import LongSection, Rows, as_main, scanned, table_section, without
from reports.plain_text import count
from reports.row_formats import Section, SortedRows, Text, render, rendered
from schemas.evaluation_rules import diff_causes

CANNOT_TELL = "cannot_tell"
NO_DIFFERENCE = "no difference"
_BOTH = ("from", "to")
_BOUND = "elected_after"
"""Where the time of the election is only bounded, the instant before which it was not."""


@dataclass(frozen=True)
class Kind:
    """What one section is about.

    Attributes:
        name: As rows for programs say it.
        title: As people read it.
        also: Columns that formats for programs have besides.
    """

    name: str
    title: str
    also: tuple[str, ...] = ()

    @property
    def table(self) -> str:
        """What `--table` calls it."""
        return f"{self.name}s"

    @property
    def contract(self) -> str:
        """The name of its table (`schemas/tables/`)."""
        return f"changed_{self.table}"


def _both(*names: str) -> tuple[str, ...]:
    return tuple(f"{side}_{name}" for name in names for side in _BOTH)


OFFSETS = Kind(
    "offset",
    "committed offsets",
    (*_both("commit_timestamp", "coordinator_partition", "record_offset"), "note", _BOUND),
)
GROUPS = Kind(
    "group",
    "groups",
    (
        *_both("protocol_type", "assignment_epoch", "protocol"),
        *_both("coordinator_partition", "record_offset"),
        _BOUND,
    ),
)
SHARE_PARTITIONS = Kind(
    "share_partition",
    "share partitions",
    (
        "topic_id",
        *_both("phase", "available_count", "acknowledged_count", "archiving_count"),
        *_both("archived_count", "max_delivery_count", "delivery_complete_count"),
        *_both("coordinator_partition", "record_offset"),
        _BOUND,
    ),
)
MEMBERS = Kind(
    "member",
    "members",
)
KINDS = (OFFSETS, GROUPS, SHARE_PARTITIONS, MEMBERS)
TABLES = tuple(kind.table for kind in KINDS)
"""What `--table` calls them."""
_LOSSES = ("went_back", "vanished")
"""Changes that come first: something is gone that was there."""


def render_difference(
    tables: Mapping[str, Rows], output_format: str, metadata: Mapping[str, Any]
) -> Text:
    """Return the differences in one of the formats.

    Args:
        tables: Of the question, by name; for programs they are read as the text is written.
        output_format: ``text``, ``json``, ``csv`` or ``markdown``.
        metadata: What the JSON object has beside `counts` and `rows`.
    """
    counts = {kind.name: _counts(tables[kind.contract]) for kind in KINDS}
    if output_format in ("json", "csv"):
        long = [
            LongSection(_losses_first(tables[kind.contract]), partial(_section, kind))
            for kind in KINDS
        ]
        return rendered(long, output_format, {**metadata, "counts": counts})
    sections = [
        replace(
            _section(kind, _losses_first(tables[kind.contract]).whole()),
            title=f"{kind.title}: {in_words(counts[kind.name])}",
        )
        for kind in KINDS
        if counts[kind.name]
    ]
    return render([*map(_for_people, sections)], output_format, metadata) or NO_DIFFERENCE


def _counts(rows: Rows) -> dict[str, int]:
    """Return how many rows say which change."""
    counts: Counter[str] = Counter()
    for piece in scanned(rows, ["change"]):
        for each in pc.value_counts(piece["change"]).to_pylist():
            counts[str(each["values"])] += int(each["counts"])
    return dict(counts)


_RANK: Final = "rank"


def _losses_first(rows: Rows) -> SortedRows:
    """Return rows in the order they have, but first what is gone, then what cannot be told."""
    return SortedRows(lambda: map(_ranked, rows.pieces()), [(_RANK, "ascending")])


def _ranked(rows: pa.Table) -> pa.Table:
    is_lost = pc.is_in(rows["change"], pa.array(_LOSSES))
    is_unsure = pc.equal(rows["change"], CANNOT_TELL)
    return rows.append_column(_RANK, pc.if_else(is_lost, 0, pc.if_else(is_unsure, 1, 2)))


def in_words(changes: Mapping[str, int]) -> str:
    """Return how many rows say which change: "9 went back, 1 vanished"."""
    words = {change: change.replace("_", " ") for change in changes}
    return ", ".join(count(number, words[each], words[each]) for each, number in changes.items())


def with_words(rows: pa.Table) -> pa.Table:
    """Return rows of a table of changes with words for people in `change` and `cause`."""
    words = pc.replace_substring(rows["change"], "_", " ")
    rows = with_values(rows, "change", words)
    if "cause" not in rows.column_names:
        return rows
    causes = [each and diff_causes()[each] for each in rows["cause"].to_pylist()]
    return with_values(rows, "cause", pa.array(causes, pa.string()))


def _section(kind: Kind, rows: pa.Table) -> Section:
    rows = with_times_as_text(rows)
    named = pa.chunked_array([pa.repeat(pa.scalar(kind.name), rows.num_rows)])
    problems = pa.array([*_LOSSES, CANNOT_TELL])
    shown = rows.append_column("kind", named).append_column(
        "is_problem", pc.is_in(rows["change"], problems)
    )
    also = ("kind", *kind.also)
    return as_main(table_section(shown, kind.contract, kind.table, problem="is_problem", also=also))


def _for_people(section: Section) -> Section:
    """Say all in words, a note beside the reason; leave out columns without any value."""
    rows = with_words(section.rows)
    if _BOUND in rows.column_names:
        bound = pc.binary_join_element_wise("<=", rows["elected_at"], " ")
        text = pc.if_else(pc.is_valid(rows[_BOUND]), bound, rows["elected_at"])
        rows = with_values(rows, "elected_at", text)
    if "note" in rows.column_names:
        reason, note = rows["reason"], rows["note"]
        both = pc.coalesce(pc.binary_join_element_wise(reason, note, "; "), reason, note)
        rows = with_values(rows, "reason", both)
    empty = [each for each in section.heads if rows[each].null_count == section.rows.num_rows]
    return replace(without(section, empty), rows=rows)
