"""The answer of `usage`: which tables are shown, and the sentences below them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from reports.layout.output_format import OutputFormat
from reports.layout.paragraphs import paragraphs
from reports.layout.section import raw_section
from reports.row_formats import Section, render
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

if TYPE_CHECKING:
    import pyarrow as pa

    from analytics.questions.usage.coordinator_load import Placed
    from analytics.questions.usage.growth import DiskOutlook
    from analytics.questions.usage.partition_usage import Identity

_TOP: Final = 10
_ON_DEMAND: Final = ("group_deletions", "record_growth", "topic_usage")
"""Tables that people see only where they name them."""


@dataclass(frozen=True)
class UsageAnswer:
    """What is to be shown.

    Attributes:
        tables: The tables by their names.
        sums: `topic_usage`, added up
        by: by this.
        even: Whether bytes come out even.
        placed: How groups lie on partitions.
    """

    tables: Mapping[str, pa.Table]
    sums: pa.Table
    by: str
    even: Identity
    placed: Placed


def usage_answer(
    answer: UsageAnswer,
    wanted: OutputFormat,
    said: Mapping[str, Any],
    disks: Sequence[DiskOutlook] = (),
    room_bytes: int | None = None,
) -> str:
    """Return what goes to stdout.

    Args:
        answer: What is shown.
        wanted: The format.
        said: What JSON has beside the tables.
        disks: When brokers' room is taken.
        room_bytes: The room.
    """
    sections = _sections(answer, wanted)
    text = render(sections, _with_top(wanted), said)
    if wanted.is_for_programs or wanted.table:
        return text
    tables = answer.tables
    notes = [
        verdicts_text(tables["log_cleaning"], said["cleaner_verdicts"]),
        brokers_text(tables["coordinator_load"]),
        placement_text(answer.placed),
        outlook_text(disks, room_bytes or 0),
        identity_text(tables["partition_usage"], answer.even),
    ]
    return "\n\n".join([text, *(paragraphs(each.splitlines()) for each in notes if each)])


def _sections(answer: UsageAnswer, wanted: OutputFormat) -> list[Section]:
    tables, programs = answer.tables, wanted.is_for_programs
    sections = [
        usage_section(answer.sums, answer.by),
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
