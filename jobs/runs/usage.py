"""What `usage` does: read decoded records once, add them up, and say it; no Spark of its own."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc

from analytics.decode.selection import Selection, names_wanted
from analytics.evaluate.usage.log_settings import LogSettings
from analytics.evaluate.usage.summaries import summed
from analytics.workspace import Workspace
from jobs.replayed import replayed
from jobs.runs.kept_evaluations import keep_evaluations
from jobs.runs.usage_tables import usage_tables
from jobs.settings_files import read_broker_settings, read_given_settings
from reports.layout.output_format import OutputFormat
from reports.layout.section import raw_section
from reports.row_formats import shown
from reports.usage.cleaning import cleaning_section, verdicts_said
from reports.usage.rows import identity_said, partition_section, usage_section
from schemas.usage_rules import usage_rules

if TYPE_CHECKING:
    from jobs.console import Console
    from jobs.replayed import Replayed
    from jobs.runs.usage_tables import Usage

CANNOT_TELL = 3
NEEDS = ("groups", "configs", "partition_leaders")
_TOP = 10


@dataclass(frozen=True)
class Wanted:
    """The options of the command.

    Attributes:
        by: What records and bytes are added up by.
        broker_configs: Files of brokers' settings.
        config: A file of settings that are in force.
    """

    by: str
    broker_configs: tuple[str, ...] = ()
    config: str | None = None


def usage_of(
    console: Console,
    wanted: Wanted,
    output_format: OutputFormat,
    *,
    out: str | None,
    groups: tuple[str, ...],
    exclude_groups: tuple[str, ...],
    **options: Any,  # noqa: ANN401 - of `replayed`, handed through
) -> tuple[str, int]:
    """Return what goes to stdout, and the exit code.

    Raises:
        GroupscopeError: An INPUT or a file of settings is not what it has to be.
    """
    # Bytes come out even of all groups only: rows are chosen when all is known.
    with replayed(console, needs=NEEDS, out=out, **options) as state:
        found = usage_tables(state.source, state.manifest, _settings(state, wanted))
        if out is not None:
            keep_evaluations(Workspace(out), found.tables, state)
        for each in found.untold:
            console.error(f"cannot tell: {each}")
        said = {
            **state.said,
            "cannot_tell": found.untold,
            "file_bytes": found.even.file_bytes,
            "comes_out_even": found.even.holds,
            "cleaner_verdicts": dict(usage_rules().cleaner_verdicts),
        }
        code = state.exit_code
    chosen = _of_groups(found.rows, Selection(groups, exclude_groups))
    answer = _answer(found, chosen, wanted, output_format, said)
    return answer, code or (CANNOT_TELL if found.untold else 0)


def _settings(state: Replayed, wanted: Wanted) -> LogSettings:
    brokers = [read_broker_settings(each) for each in wanted.broker_configs]
    return LogSettings.of(
        usage_rules(),
        state.tables.read("configs").to_pylist(),
        {each.node: each.values for each in brokers},
        read_given_settings(wanted.config).values,
    )


def _of_groups(rows: pa.Table, selection: Selection) -> pa.Table:
    if not (selection.groups or selection.exclude_groups):
        return rows
    there = [name for name in pc.unique(rows["group_id"]).to_pylist() if name is not None]
    names = names_wanted(there, selection.groups, selection.exclude_groups, there)
    return rows.filter(pc.is_in(rows["group_id"], pa.array(names, pa.string())))


def _with_top(wanted: OutputFormat) -> OutputFormat:
    """Return the format; of several tables people see the first rows, unless they ask for more."""
    if wanted.is_for_programs or wanted.top is not None or wanted.table or wanted.only_problems:
        return wanted
    return OutputFormat(
        wanted, is_wide=wanted.is_wide, top=_TOP, sort=wanted.sort, is_colored=wanted.is_colored
    )


def _answer(
    found: Usage,
    chosen: pa.Table,
    wanted: Wanted,
    output_format: OutputFormat,
    said: dict[str, Any],
) -> str:
    is_for_programs = output_format.is_for_programs
    sections = [
        usage_section(summed(chosen, wanted.by), wanted.by),
        cleaning_section(found.cleaning, is_for_programs=is_for_programs),
        partition_section(found.partitions),
    ]
    if is_for_programs or output_format.table == "topic_usage":
        sections.append(raw_section(chosen, "topic_usage"))
    answer = shown(sections, _with_top(output_format), said)
    if is_for_programs:
        return answer
    notes = [verdicts_said(found.cleaning, said["cleaner_verdicts"])]
    return "\n\n".join([answer, *notes, identity_said(found.partitions, found.even)])
