"""The differences of two states: one section for groups, offsets, members, share partitions."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc

from reports.layout.cells import times
from reports.layout.section import LongSection, Rows, as_main, table_section, without
from reports.quantities import count
from reports.row_formats import Section, Text, render, rendered
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
            LongSection(_LossesFirst(tables[kind.contract]), partial(_section, kind))
            for kind in KINDS
        ]
        return rendered(long, output_format, {**metadata, "counts": counts})
    sections = [
        replace(
            _section(kind, _LossesFirst(tables[kind.contract]).whole()),
            title=f"{kind.title}: {in_words(counts[kind.name])}",
        )
        for kind in KINDS
        if counts[kind.name]
    ]
    return render([*map(_for_people, sections)], output_format, metadata) or NO_DIFFERENCE


def _counts(rows: Rows) -> dict[str, int]:
    """Return how many rows say which change."""
    counts: Counter[str] = Counter()
    for piece in rows.pieces(["change"]):
        for each in pc.value_counts(piece["change"]).to_pylist():
            counts[str(each["values"])] += int(each["counts"])
    return dict(counts)


@dataclass(frozen=True)
class _LossesFirst:
    """Rows of which those come first that are gone, then those that cannot be told.

    Within these the order stays as it is.
    """

    rows: Rows

    @property
    def num_rows(self) -> int:
        """How many rows there are."""
        return self.rows.num_rows

    def pieces(self, columns: Sequence[str] | None = None) -> Iterator[pa.Table]:
        """Yield them in order, some at a time; at least once."""
        for number in range(_RANKS):
            for rows in self.rows.pieces():
                found = _ranked(rows)[number]
                yield found if columns is None else found.select(columns)

    def first(self, most: int) -> pa.Table:
        """Return the first rows."""
        held = [self.rows.first(0)]
        for rows in self.pieces() if most else ():
            held.append(rows.slice(0, most - sum(each.num_rows for each in held)))
            if sum(each.num_rows for each in held) >= most:
                break
        return pa.concat_tables(held)

    def whole(self) -> pa.Table:
        """Return all rows."""
        return pa.concat_tables(_ranked(self.rows.whole()))


_RANKS: Final = 3


def _ranked(rows: pa.Table) -> list[pa.Table]:
    """Return the rows that are gone, those that cannot be told, and the others."""
    is_lost = pc.is_in(rows["change"], pa.array(_LOSSES))
    is_unsure = pc.equal(rows["change"], CANNOT_TELL)
    rest = pc.invert(pc.or_(is_lost, is_unsure))
    return [rows.filter(each) for each in (is_lost, is_unsure, rest)]


def in_words(changes: Mapping[str, int]) -> str:
    """Return how many rows say which change: "9 went back, 1 vanished"."""
    words = {change: change.replace("_", " ") for change in changes}
    return ", ".join(count(number, words[each], words[each]) for each, number in changes.items())


def with_words(rows: pa.Table) -> pa.Table:
    """Return rows of a table of changes with words for people in `change` and `cause`."""
    words = pc.replace_substring(rows["change"], "_", " ")
    rows = rows.set_column(rows.column_names.index("change"), "change", words)
    if "cause" not in rows.column_names:
        return rows
    causes = [each and diff_causes()[each] for each in rows["cause"].to_pylist()]
    place = rows.column_names.index("cause")
    return rows.set_column(place, "cause", pa.array(causes, pa.string()))


def _section(kind: Kind, rows: pa.Table) -> Section:
    rows = _with_times_as_text(rows)
    named = pa.chunked_array([pa.repeat(pa.scalar(kind.name), rows.num_rows)])
    problems = pa.array([*_LOSSES, CANNOT_TELL])
    shown = rows.append_column("kind", named).append_column(
        "is_problem", pc.is_in(rows["change"], problems)
    )
    also = ("kind", *kind.also)
    return as_main(table_section(shown, kind.contract, kind.table, problem="is_problem", also=also))


def _with_times_as_text(rows: pa.Table) -> pa.Table:
    for place, field in enumerate(rows.schema):
        if pa.types.is_timestamp(field.type):
            rows = rows.set_column(place, field.name, times(rows[field.name]))
    return rows


def _for_people(section: Section) -> Section:
    """Say all in words, a note beside the reason; leave out columns without any value."""
    rows = with_words(section.rows)
    if _BOUND in rows.column_names:
        bound = pc.binary_join_element_wise("<=", rows["elected_at"], " ")
        text = pc.if_else(pc.is_valid(rows[_BOUND]), bound, rows["elected_at"])
        rows = rows.set_column(rows.column_names.index("elected_at"), "elected_at", text)
    if "note" in rows.column_names:
        reason, note = rows["reason"], rows["note"]
        both = pc.coalesce(pc.binary_join_element_wise(reason, note, "; "), reason, note)
        rows = rows.set_column(rows.column_names.index("reason"), "reason", both)
    empty = [each for each in section.heads if rows[each].null_count == section.rows.num_rows]
    return replace(without(section, empty), rows=rows)
