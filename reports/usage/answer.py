"""The answer of `usage`: which tables are shown, and the sentences below them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import pyarrow as pa

from reports.layout.output_format import OutputFormat
from reports.layout.paragraphs import paragraphs
from reports.layout.section import raw_section
from reports.row_formats import Section, Text, render, rendered
from reports.usage.cleaning import cleaning_section, verdicts_text
from reports.usage.load import (
    brokers_text,
    growth_section,
    load_section,
    outlook_text,
    placement_text,
)
from reports.usage.rows import identity_text, partition_section, usage_section
from reports.usage.writers import (
    clocks_section,
    committers_section,
    deletions_section,
    growth_of_records_section,
    limits_section,
    offset_deletions_section,
    patterns_section,
)

_TOP: Final = 10
_ON_DEMAND: Final = ("group_deletions", "record_growth", "topic_usage")
"""Tables that people see only where they name them."""


def usage_text(
    tables: Mapping[str, pa.Table],
    figures: Mapping[str, Any],
    wanted: OutputFormat,
    metadata: Mapping[str, Any],
    *,
    by: str,
    room_bytes: int | None = None,
) -> Text:
    """Return the answer as text.

    Args:
        tables: Of the question, by name.
        figures: `sums`, `topic_usage` added up; `identity`, whether bytes come out even; `placed`,
            how groups lie on partitions; `disks`, when brokers' room is taken.
        wanted: The format.
        metadata: What JSON has beside the tables.
        by: What records and bytes are added up by.
        room_bytes: The room of a broker.
    """
    sections = _sections(tables, figures["sums"], by, wanted)
    if wanted.is_for_programs or wanted.table:
        return rendered(sections, _with_top(wanted), metadata)
    text = render(sections, _with_top(wanted), metadata)
    notes = [
        verdicts_text(tables["log_cleaning"], metadata["cleaner_verdicts"]),
        brokers_text(tables["coordinator_load"]),
        placement_text(figures["placed"]),
        outlook_text(figures["disks"], room_bytes or 0),
        identity_text(tables["partition_usage"], figures["identity"]),
    ]
    return "\n\n".join([text, *(paragraphs(each.splitlines()) for each in notes if each)])


def _sections(
    tables: Mapping[str, pa.Table], sums: pa.Table, by: str, wanted: OutputFormat
) -> list[Section]:
    programs = wanted.is_for_programs
    sections = [
        usage_section(sums, by),
        cleaning_section(tables["log_cleaning"], is_for_programs=programs),
        committers_section(tables["committers"]),
        patterns_section(tables["one_shot_groups"]),
        deletions_section(tables["group_deletions"]),
        offset_deletions_section(tables["offset_deletions"]),
        limits_section(tables["size_limits"], only_near=not (programs or wanted.table)),
        growth_of_records_section(tables["record_growth"]),
        clocks_section(tables["clock_differences"]),
        load_section(tables["coordinator_load"]),
        *([growth_section(tables["usage_growth"])] if "usage_growth" in tables else []),
        partition_section(tables["partition_usage"]),
        raw_section(tables["topic_usage"], "topic_usage"),
    ]
    if programs:
        return sections
    return [
        each
        for each in sections
        if each.name == wanted.table
        or (each.name not in _ON_DEMAND and (each.rows.num_rows or each.name == "usage"))
    ]


def _with_top(wanted: OutputFormat) -> OutputFormat:
    """Return the format; of several tables people see the first rows, unless they ask for more."""
    if wanted.is_for_programs or wanted.top is not None or wanted.table or wanted.only_problems:
        return wanted
    return OutputFormat(
        wanted, is_wide=wanted.is_wide, top=_TOP, sort=wanted.sort, is_colored=wanted.is_colored
    )
