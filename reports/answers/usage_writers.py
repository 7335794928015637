"""Who fills the offsets topic: committers, groups left behind, what is near a limit."""

from __future__ import annotations

from dataclasses import replace

import pyarrow as pa
import pyarrow.compute as pc

from reports.layout.table_section import table_section
from reports.row_formats import Section


def committers_section(rows: pa.Table) -> Section:
    """Return the table `committers`."""
    place = rows.column_names.index("commits_per_second")
    rate = pc.round(rows["commits_per_second"], 3)
    shown = rows.set_column(place, "commits_per_second", rate)
    return table_section(shown, "committers", title="Committers")


def patterns_section(rows: pa.Table) -> Section:
    """Return the table `one_shot_groups`."""
    title = "Groups whose names look generated (--table group_deletions lists commands to review)"
    return table_section(rows, "one_shot_groups", title=title)


def deletions_section(rows: pa.Table) -> Section:
    """Return the table `group_deletions`."""
    return table_section(rows, "group_deletions")


def offset_deletions_section(rows: pa.Table) -> Section:
    """Return the table `offset_deletions`."""
    title = "Offsets of topics that are gone (to review)"
    return table_section(rows, "offset_deletions", title=title)


def growth_of_records_section(rows: pa.Table) -> Section:
    """Return the table `record_growth`."""
    title = "How many more members or topics fit into a group's records"
    shown = rows.append_column("each", pc.round(rows["bytes_each"], 1))
    return table_section(shown, "record_growth", title=title)


def clocks_section(rows: pa.Table) -> Section:
    """Return the table `clock_differences`."""
    return table_section(rows, "clock_differences", title="Times that contradict each other")


def limits_section(rows: pa.Table) -> Section:
    """Return the table `size_limits`."""
    section = table_section(rows, "size_limits", title="Near what brokers take", problem="is_near")
    return replace(section, also=[*section.also, "is_near"])
