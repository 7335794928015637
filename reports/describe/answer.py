"""The answer of `describe`: rows under the heads of Kafka's tools, one section a tool."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from reports.describe.columns import FAMILIES, HEADS, REMARK, View, contract_name
from reports.describe.source import Source
from reports.describe.views import only_named, rows_of, shown_columns
from reports.row_formats import Section, Text, rendered

SPARE = ("client_host", "client_id")
"""What text leaves out first where there is no room."""
EARLY = "assignment_fields_written"
DOUBTS = ("complete", "missing", EARLY)
"""Columns that say whether a row can be told, why not, and what only Kafka's tools cannot."""


def describe_text(
    source: Source,
    what: str,
    output_format: str,
    metadata: Mapping[str, Any],
    *,
    verbose: bool,
) -> Text:
    """Return groups as text.

    Args:
        source: What describes them.
        what: Offsets, members or state.
        output_format: The format.
        metadata: What JSON has beside the rows; `kafka_version` is the release of the tools.
        verbose: With what the tools add for `--verbose`.
    """
    release = metadata["kafka_version"]
    is_for_people = output_format not in {"json", "csv"}
    sections = []
    for family in FAMILIES:
        view = View(family, what)
        if not source.groups_of(family).num_rows:
            continue
        rows = only_named(rows_of(view, source, release, verbose=verbose), None, source.topics)
        names = shown_columns(view, rows, release, verbose=verbose)
        sections.append(_section(view, rows, names, is_for_people=is_for_people))
    return rendered(sections, output_format, metadata)


def _section(view: View, rows: pa.Table, names: Sequence[str], *, is_for_people: bool) -> Section:
    """Return rows under the heads of Kafka's tool, and the names of our tables for programs.

    Of rows that cannot be told, or not all of them, it is said why.
    """
    heads = {contract_name(name, view.family): HEADS[name] for name in names}
    also = [name for name in ("group_type", *DOUBTS) if name in rows.column_names]
    found = rows.select([*names, *also]).rename_columns([*heads, *also])
    if is_for_people and "missing" in also:
        remark = _remarks(found)
        if remark.null_count < found.num_rows:
            found, heads = found.append_column("remark", remark), {**heads, **REMARK}
    problem = None
    if "missing" in also:
        problem = "is_untold"
        found = found.append_column(problem, pc.is_valid(found["missing"]))
    return Section(found, heads, also, name=f"{view.family}-groups", problem=problem, spare=SPARE)


def _remarks(rows: pa.Table) -> pa.ChunkedArray:
    """Return why rows cannot be told, and which of them Kafka's tools fail on."""
    remarks = pc.binary_join_element_wise("cannot tell", rows["missing"], ": ")
    if EARLY not in rows.column_names:
        return remarks
    early = "the assignment lacks its last field: Kafka's tools fail on it"
    is_early = pc.is_valid(rows[EARLY])
    return pc.coalesce(remarks, pc.if_else(is_early, early, pa.scalar(None, pa.string())))
