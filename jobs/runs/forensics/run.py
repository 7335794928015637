"""What `forensics` does: replay the whole, the time before and after, and write what differs."""

from __future__ import annotations

import json
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa
import pyarrow.compute as pc

from analytics.contracts import table_of
from analytics.decode.selection import is_name, names_wanted
from analytics.errors import CannotTellError
from analytics.gaps.group_selection import select_groups
from analytics.questions.diff.paired import CANNOT_TELL as UNSURE_CHANGE
from analytics.questions.diff.question import DIFF, OFFSETS, DiffSettings
from analytics.questions.forensics.window import Window, happened, suffering
from analytics.questions.restore.question import RESTORE as RESTORING
from analytics.questions.restore.question import RestoreSettings
from analytics.questions.timeline.question import TIMELINE, verdicts_of
from analytics.questions.timeline.words import CANNOT_TELL
from analytics.replay.dump.times import first_time, last_time, milliseconds, resolved_time
from analytics.replay.dump.written_instants import END, BeforeEnd, iso_time
from analytics.replayed.kept_evaluations import keep_evaluations
from analytics.workspace import INCIDENT, INCIDENT_PAGE, RESTORE, Workspace
from jobs.cli import exit_codes
from jobs.restoring import write_restored
from jobs.runs.forensics.rows import (
    ROWS_OF_STATES,
    changes_of,
    cluster_of,
    others_of,
    owners_of,
)
from jobs.spark.session import one_session
from jobs.workspaces.compared_states import Side, compared_states
from jobs.workspaces.kept_replay import of_folder, replay_into_folder
from jobs.workspaces.replayed import replayed
from jobs.workspaces.written_text import write_text
from reports.incident.html import html_of
from reports.incident.page import Incident, incident_page
from reports.incident.sections import sections_of
from reports.layout.output_format import OutputFormat
from reports.row_formats import render
from schemas import CONSUMER_OFFSETS, SHARE_GROUP_STATE

if TYPE_CHECKING:
    from collections.abc import Sequence

    from jobs.cli.console import Console
    from jobs.workspaces.replayed import Replayed

NEEDS = (*TIMELINE.needs, *ROWS_OF_STATES, "assignment_history", "configs")


@dataclass(frozen=True)
class Wanted:
    """The options of the command.

    Attributes:
        out: The folder.
        around: When the incident was, as the option has it.
        window_minutes: So long before and after it.
        groups: Names and patterns; nothing is whoever suffered.
        exclude_groups: Likewise, left out.
        end_offsets: A file.
    """

    out: str
    around: int | BeforeEnd
    window_minutes: float
    groups: tuple[str, ...]
    exclude_groups: tuple[str, ...]
    end_offsets: str | None


@one_session()
def forensics_of(
    console: Console,
    wanted: Wanted,
    output_format: str,
    **options: Any,  # noqa: ANN401 - of `replayed`, handed through
) -> tuple[str, int]:
    """Return what goes to stdout, and the exit code.

    Raises:
        CannotTellError: The incident is not in the time of the dump.
        GroupscopeError: An INPUT, a side file or the folder is not what it has to be.
    """
    inputs, unread = replay_into_folder(console, wanted.out, needs=NEEDS, options=options)
    own = of_folder(wanted.out, options)
    quiet = replace(console, quiet=True)
    with replayed(quiet, needs=NEEDS, out=wanted.out, **own) as state:
        around, window = _window(console, wanted, state)
        verdicts = verdicts_of(state, wanted.end_offsets)
        meanwhile = happened(verdicts, window)
        events = state.tables.read(
            "group_events", where=(pc.field("at") >= window.begin) & (pc.field("at") <= window.end)
        )
        groups = _groups(wanted, state, verdicts, events, window)
        sides = _sides(wanted, window, state)
        later = {name: each for name, each in own.items() if name not in _OF_SIDES}
        asked_for = {**later, "groups": tuple(groups), "exclude_groups": ()}
        console.say(f"forensics: before and after {iso_time(around)}")
        with compared_states(quiet, *sides, needs=ROWS_OF_STATES, **asked_for) as (before, after):
            asked = select_groups(before).without_missing(groups)
            incident = Incident(
                around=around,
                begin=window.begin,
                end=window.end,
                groups=tuple(groups),
                verdicts=table_of("offset_verdicts", _of(meanwhile, groups)),
                changes=changes_of(DIFF.ask(after, DiffSettings(before)).tables[OFFSETS]),
                owners=owners_of(before, after),
                events=events.filter(pc.is_in(events["group_id"], pa.array(groups, pa.string()))),
                cluster=cluster_of(state, window),
                others=others_of(state, frozenset(groups), meanwhile),
                cannot_tell=(*asked.cannot_tell, *before.uncertain, *after.uncertain),
            )
            present = replace(
                state, tables=replace(state.tables, selection=before.tables.selection)
            )
            answer = RESTORING.ask(before, RestoreSettings(present, wanted.end_offsets))
            folder, as_text = str(Path(wanted.out) / RESTORE), OutputFormat("text")
            given_back, _ = write_restored(
                quiet, before, present, answer, folder, as_text, include_live=False
            )
        incident = replace(incident, restored=given_back)
        keep_evaluations(
            Workspace(wanted.out), {"offset_verdicts": table_of("offset_verdicts", verdicts)}, state
        )
        said = {
            **state.response_metadata,
            "input": list(inputs),
            "around": iso_time(around),
            "from": iso_time(window.begin),
            "to": iso_time(window.end),
            "groups": groups,
            "cannot_tell": list(incident.cannot_tell),
        }
        code = _code(console, wanted, incident, unread)
        _write(wanted.out, incident, state, {**said, "exit_code": code})
    console.say(f"forensics: {Path(wanted.out) / INCIDENT_PAGE}")
    return render(sections_of(incident, output_format), output_format, said), code


COORDINATED: Final = (CONSUMER_OFFSETS, SHARE_GROUP_STATE)
_OF_SIDES: Final = ("inputs", "as_of", "ends", "prefer_copy", "out", "max_undecoded")


def _of(verdicts: Sequence[dict[str, Any]], groups: Sequence[str]) -> list[dict[str, Any]]:
    chosen = set(groups)
    return [each for each in verdicts if each["group_id"] in chosen]


def _window(console: Console, wanted: Wanted, state: Replayed) -> tuple[datetime, Window]:
    """Return when it was, and the time around it that the dump holds.

    Raises:
        CannotTellError: The dump holds nothing of it.
    """
    around = resolved_time(wanted.around, state.manifest)
    first, last = first_time(state.manifest), last_time(state.manifest)
    if around is None or first is None or last is None:
        raise CannotTellError("no record of this dump has a time: nothing is around --around")
    if not first <= around <= last:
        raise CannotTellError(
            f"--around {iso_time(around)} is not in this dump, whose records are from "
            f"{iso_time(first)} to {iso_time(last)}"
        )
    span = timedelta(minutes=wanted.window_minutes)
    window = Window(max(around - span, first), min(around + span, last))
    if around - span < first:
        console.warn(f"the dump begins at {iso_time(first)}: what was before it is not known")
    if (sentence := _before_all_groups(window.begin, state)) is not None:
        console.warn(sentence)
    return around, window


def _before_all_groups(begin: datetime, state: Replayed) -> str | None:
    """Return what to know where the time before the incident is before anything of a group."""
    first = first_time(state.manifest, COORDINATED)
    if first is None or begin >= first:
        return None
    return (
        f"before is {iso_time(begin)}, and no record of a group is older than {iso_time(first)}: "
        "nothing of before is there to compare or to restore. With a shorter --window-minutes "
        "before is later"
    )


def _groups(
    wanted: Wanted,
    state: Replayed,
    verdicts: Sequence[dict[str, Any]],
    events: pa.Table,
    window: Window,
) -> list[str]:
    """Return the groups that are told.

    Raises:
        CannotTellError: None is there, or nothing happened to any.
    """
    there = {
        *state.tables.read("groups", ["group_id"])["group_id"].to_pylist(),
        *(each["group_id"] for each in verdicts),
        *pc.unique(state.tables.read("group_events", ["group_id"])["group_id"]).to_pylist(),
    } - {None}
    if wanted.groups:
        names = [each for each in wanted.groups if is_name(each)]
        chosen = names_wanted(sorted(there | set(names)), wanted.groups, wanted.exclude_groups)
    else:
        rows = events.select(["group_id", "at", "event"]).to_pylist()
        chosen = names_wanted(suffering(verdicts, rows, window), (), wanted.exclude_groups)
    if not chosen:
        raise CannotTellError(
            f"no group that matches {', '.join(wanted.groups)} is in this dump"
            if wanted.groups
            else f"nothing is known to have happened to a group from {iso_time(window.begin)} to "
            f"{iso_time(window.end)}; name one with --group"
        )
    return list(chosen)


def _sides(wanted: Wanted, window: Window, state: Replayed) -> tuple[Side, Side]:
    last = last_time(state.manifest)
    end = END if last is None or window.end >= last else milliseconds(window.end)
    inputs = (wanted.out,)
    return Side(inputs, milliseconds(window.begin)), Side(inputs, end)


def _code(console: Console, wanted: Wanted, incident: Incident, unread: int) -> int:
    for each in incident.cannot_tell:
        console.error(f"cannot tell: {each}")
    words = incident.verdicts["verdict"].to_pylist()
    doubts = CANNOT_TELL in words or UNSURE_CHANGE in incident.changes["change"].to_pylist()
    if unread or (wanted.groups and (incident.cannot_tell or doubts)):
        return exit_codes.CANNOT_TELL
    return exit_codes.DONE


def _write(out: str, incident: Incident, state: Replayed, said: dict[str, Any]) -> None:
    folder = Path(out)
    rows = {name: rows.to_pylist() for name, rows in incident.tables().items()}
    text = json.dumps({"schema_version": 1, **said, **rows}, default=_as_json, indent=1)
    write_text(folder / INCIDENT, text)
    tables = {
        name: state.tables.read(name)
        for name in ("offset_history", "assignment_history", "coordinator_epochs")
    }
    write_text(
        folder / INCIDENT_PAGE, html_of(incident_page(incident, tables, state.manifest, said))
    )


def _as_json(value: object) -> str:
    return iso_time(value) if isinstance(value, datetime) else str(value)
