"""What `forensics` does: replay the whole, the time before and after, and write what differs."""

from __future__ import annotations

import json
from dataclasses import dataclass, replace
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from analytics.contracts import table_of
from analytics.gaps.gap import gap_documents, words_of
from analytics.gaps.group_selection import select_groups
from analytics.questions.diff.changes import CANNOT_TELL as UNSURE_CHANGE
from analytics.questions.diff.changes import OFFSETS
from analytics.questions.diff.question import DIFF, DiffSettings
from analytics.questions.forensics.incident import (
    ROWS_OF_STATES,
    Window,
    changes_of,
    cluster_of,
    events_in,
    groups_hit,
    happened,
    of_groups,
    others_of,
    owners_of,
    time_around,
)
from analytics.questions.restore.question import RESTORE as RESTORING
from analytics.questions.restore.question import RestoreSettings
from analytics.questions.timeline.question import TIMELINE, TimelineSettings
from analytics.questions.timeline.words import CANNOT_TELL
from analytics.replay.dump.choices import END, BeforeEnd, iso_time
from analytics.replay.dump.times import last_time, milliseconds
from analytics.replayed.kept_evaluations import keep_evaluations
from analytics.workspace import INCIDENT, INCIDENT_PAGE, RESTORE, Workspace
from jobs.cli import exit_codes
from jobs.restoring import write_restored
from jobs.spark.session import one_session
from jobs.workspaces.compared_states import Side, compared_states
from jobs.workspaces.kept_replay import of_folder, replay_into_folder
from jobs.workspaces.replayed import replayed
from jobs.workspaces.written_text import write_text
from reports.incident import Incident, html_of, incident_page, sections_of
from reports.layout.output_format import OutputFormat
from reports.row_formats import Text, rendered

if TYPE_CHECKING:
    from jobs.cli.console import Console
    from jobs.workspaces.replayed import Replayed

NEEDS = (*TIMELINE.needs, *ROWS_OF_STATES, "assignment_history", "configs")


@dataclass(frozen=True)
class ForensicsOptions:
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
    forensics_options: ForensicsOptions,
    output_format: str,
    **options: Any,  # noqa: ANN401 - of `replayed`, handed through
) -> tuple[Text, int]:
    """Return what goes to stdout, and the exit code.

    Raises:
        CannotTellError: The incident is not in the time of the dump.
        GroupscopeError: An INPUT, a side file or the folder is not what it has to be.
    """
    inputs, unread = replay_into_folder(
        console, forensics_options.out, needs=NEEDS, options=options
    )
    own = of_folder(forensics_options.out, options)
    quiet = replace(console, quiet=True)
    with replayed(quiet, needs=NEEDS, out=forensics_options.out, **own) as state:
        time = time_around(state, forensics_options.around, forensics_options.window_minutes)
        for each in time.warnings:
            console.warn(each)
        around, window = time.at, time.window
        answered = TIMELINE.ask(state, TimelineSettings(end_offsets=forensics_options.end_offsets))
        happenings = {
            "offset_verdicts": answered.tables["offset_verdicts"],
            "group_events": state.tables.read("group_events"),
        }
        meanwhile = happened(happenings["offset_verdicts"].to_pylist(), window)
        groups = groups_hit(
            state, happenings, window, forensics_options.groups, forensics_options.exclude_groups
        )
        sides = _sides(forensics_options, window, state)
        later = {name: each for name, each in own.items() if name not in _OF_SIDES}
        asked_for = {**later, "groups": tuple(groups), "exclude_groups": ()}
        console.say(f"forensics: before and after {iso_time(around)}")
        with compared_states(quiet, *sides, needs=ROWS_OF_STATES, **asked_for) as (before, after):
            asked = select_groups(before).without_missing(groups)
            gaps = (*asked.gaps, *before.uncertain, *after.uncertain)
            incident = Incident(
                around=around,
                begin=window.begin,
                end=window.end,
                groups=tuple(groups),
                verdicts=of_groups(table_of("offset_verdicts", meanwhile), groups),
                changes=changes_of(DIFF.ask(after, DiffSettings(before)).tables[OFFSETS]),
                owners=owners_of(before, after),
                events=of_groups(events_in(happenings["group_events"], window), groups),
                cluster=cluster_of(state, window),
                others=others_of(state, frozenset(groups), meanwhile),
                cannot_tell=words_of(gaps),
            )
            present = replace(
                state, tables=replace(state.tables, selection=before.tables.selection)
            )
            answer = RESTORING.ask(before, RestoreSettings(present, forensics_options.end_offsets))
            folder, as_text = str(Path(forensics_options.out) / RESTORE), OutputFormat("text")
            given_back, _ = write_restored(
                quiet, before, present, answer, folder, as_text, include_live=False
            )
        incident = replace(incident, restored="".join(given_back))
        keep_evaluations(Workspace(forensics_options.out), answered.tables_to_keep, state)
        said = {
            **state.response_metadata,
            "input": list(inputs),
            "around": iso_time(around),
            "from": iso_time(window.begin),
            "to": iso_time(window.end),
            "groups": groups,
            "cannot_tell": list(incident.cannot_tell),
            "gaps": gap_documents((*gaps, *before.left_out, *after.left_out)),
        }
        code = _code(console, forensics_options, incident, unread)
        _write(forensics_options.out, incident, state, {**said, "exit_code": code})
    console.say(f"forensics: {Path(forensics_options.out) / INCIDENT_PAGE}")
    return rendered(sections_of(incident, output_format), output_format, said), code


_OF_SIDES: Final = ("inputs", "as_of", "ends", "prefer_copy", "out", "max_undecoded")


def _sides(
    forensics_options: ForensicsOptions, window: Window, state: Replayed
) -> tuple[Side, Side]:
    last = last_time(state.manifest)
    end = END if last is None or window.end >= last else milliseconds(window.end)
    inputs = (forensics_options.out,)
    return Side(inputs, milliseconds(window.begin)), Side(inputs, end)


def _code(
    console: Console, forensics_options: ForensicsOptions, incident: Incident, unread: int
) -> int:
    for each in incident.cannot_tell:
        console.error(f"cannot tell: {each}")
    words = incident.verdicts["verdict"].to_pylist()
    doubts = CANNOT_TELL in words or UNSURE_CHANGE in incident.changes["change"].to_pylist()
    if unread or (forensics_options.groups and (incident.cannot_tell or doubts)):
        return exit_codes.CANNOT_TELL
    return exit_codes.DONE


def _write(out: str, incident: Incident, state: Replayed, document: dict[str, Any]) -> None:
    folder = Path(out)
    rows = {name: rows.to_pylist() for name, rows in incident.tables().items()}
    text = json.dumps({"schema_version": 2, **document, **rows}, default=_as_json, indent=1)
    write_text(folder / INCIDENT, text)
    tables = {
        name: state.tables.read(name)
        for name in ("offset_history", "assignment_history", "coordinator_epochs")
    }
    write_text(
        folder / INCIDENT_PAGE, html_of(incident_page(incident, tables, state.manifest, document))
    )


def _as_json(value: object) -> str:
    return iso_time(value) if isinstance(value, datetime) else str(value)
