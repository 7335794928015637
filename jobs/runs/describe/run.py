"""What `describe` does: rows of the groups asked for, or how they differ from Kafka's own."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc

from analytics.gaps.group_selection import GroupSelection, select_groups
from analytics.gaps.undecided_offsets import undecided_of_all
from analytics.gaps.unread_members import COLUMNS, with_unread
from jobs.cli.exit_codes import DIFFERENT, DONE
from jobs.cli.incomplete_groups import groups_exit_code, report_groups
from jobs.runs.describe.against import compare_saved
from jobs.runs.describe.epoch import NEEDS as EPOCH_NEEDS
from jobs.runs.describe.epoch import groups_at_epoch
from jobs.runs.describe.source import NEEDS, bare_source, describe_source
from jobs.workspaces.replayed import replayed
from reports.describe.against import render_comparison
from reports.describe.columns import (
    FAMILIES,
    HEADS,
    MEMBERS,
    OFFSETS,
    REMARK,
    STATE,
    View,
    contract_name,
)
from reports.describe.views import rows_of, shown_columns
from reports.row_formats import Section, render

if TYPE_CHECKING:
    from jobs.cli.console import Console
    from jobs.workspaces.replayed import Replayed
    from reports.describe.source import Source

SPARE = ("client_host", "client_id")
"""What text leaves out first where there is no room."""
EARLY = "assignment_fields_written"
DOUBTS = ("complete", "missing", EARLY)
"""Columns that say whether a row can be told, why not, and what only Kafka's tools cannot."""

EMPTY = "Empty"
REBALANCING = ("PreparingRebalance", "CompletingRebalance", "Assigning", "Reconciling")


@dataclass(frozen=True)
class Wanted:
    """What of the groups is to be shown.

    Attributes:
        what: offsets, members or state; None is offsets.
        verbose: With what Kafka's tools add for `--verbose`.
        group_type: Only groups of this type.
        end_offsets: A side file with the ends of logs.
        against: A saved output to be held against ours.
        epoch: A generation or group epoch; None is the instant asked about.
    """

    what: str | None = None
    verbose: bool = False
    group_type: str | None = None
    end_offsets: str | None = None
    against: str | None = None
    epoch: int | None = None


def describe_inputs(
    console: Console,
    wanted: Wanted,
    output_format: str,
    **options: Any,  # noqa: ANN401 - of `replayed`, handed through
) -> tuple[str, int]:
    """Return what goes to stdout, and the exit code.

    Raises:
        GroupscopeError: An INPUT or a side file is not what it has to be.
    """
    if wanted.epoch is not None:
        return _describe_epoch(console, wanted, wanted.epoch, output_format, options)
    with replayed(console, needs=NEEDS, **options) as state:
        asked = select_groups(state, wanted.group_type, with_offsets=wanted.what in (None, OFFSETS))
        source = describe_source(state, asked.found, wanted.end_offsets, console)
        if wanted.what != STATE and wanted.against is None:
            asked = with_unread(asked, source.members.select(COLUMNS))
        if wanted.what in {None, OFFSETS} and not state.tables.selection.groups:
            undecided = [each for each in (undecided_of_all(state),) if each]
            asked = replace(asked, cannot_tell=(*asked.cannot_tell, *undecided))
        report_groups(console, asked)
        if wanted.against is not None:
            result = compare_saved(wanted.against, source, state, console)
            answer = render_comparison(result, output_format, _said(state, asked))
            return answer, groups_exit_code(asked) or state.exit_code or (
                DONE if result.is_equal else DIFFERENT
            )
        sections = _sections(source, state, wanted, output_format)
        said = _said(state, asked)
        _notice(console, asked, state)
        return render(sections, output_format, said), groups_exit_code(asked) or state.exit_code


def _describe_epoch(
    console: Console,
    wanted: Wanted,
    epoch: int,
    output_format: str,
    options: Mapping[str, Any],
) -> tuple[str, int]:
    with replayed(console, needs=EPOCH_NEEDS, **options) as state:
        asked, source = groups_at_epoch(state, epoch, bare_source(state))
        asked = with_unread(asked, source.members.select(COLUMNS))
        report_groups(console, asked)
        view = replace(wanted, what=wanted.what or MEMBERS, verbose=True)
        said = {**_said(state, asked), "epoch": epoch}
        sections = _sections(source, state, view, output_format)
        return render(sections, output_format, said), groups_exit_code(asked) or state.exit_code


def _notice(console: Console, asked: GroupSelection, state: Replayed) -> None:
    """Say of groups that were asked for by name what Kafka's tools say of their states."""
    for each in asked.found.select(["group_id", "state"]).to_pylist():
        if each["group_id"] in state.tables.selection.groups:
            if each["state"] == EMPTY:
                console.say(f"group {each['group_id']} has no active members")
            elif each["state"] in REBALANCING:
                console.say(f"group {each['group_id']} is rebalancing")


def _said(state: Replayed, asked: GroupSelection) -> dict[str, Any]:
    return {
        **state.response_metadata,
        "cannot_tell": list(asked.cannot_tell),
    }


def _sections(source: Source, state: Replayed, wanted: Wanted, output_format: str) -> list[Section]:
    sections = []
    for family in FAMILIES:
        view = View(family, wanted.what or OFFSETS)
        if not source.groups_of(family).num_rows:
            continue
        rows = rows_of(view, source, state.release, verbose=wanted.verbose)
        if "topic" in rows.column_names:
            rows = rows.filter(pc.is_in(rows["topic"], state.topics_wanted(rows["topic"])))
        names = shown_columns(view, rows, state.release, verbose=wanted.verbose)
        is_for_people = output_format not in {"json", "csv"}
        sections.append(_section(view, rows, names, is_for_people=is_for_people))
    return sections


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
