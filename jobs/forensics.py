"""What `forensics` does: replay the whole, the time before and after, and write what differs."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import asdict, dataclass, replace
from itertools import chain
from typing import TYPE_CHECKING, Any, Final

from analytics.gaps.gap import gap_documents
from analytics.locations import absolute_location, join
from analytics.questions.forensics.causes import CAUSES
from analytics.questions.forensics.incident import Around, Window, drawn_history, time_around
from analytics.questions.forensics.question import (
    FORENSICS,
    GROUPS,
    RESTORED,
    ROWS_OF_STATES,
    ForensicsSettings,
)
from analytics.questions.question import Answer
from analytics.questions.restore.question import OF_GROUPS, OFFSETS
from analytics.replay.dump.choices import END, BeforeEnd, iso_time
from analytics.replay.dump.times import last_time, milliseconds
from analytics.replayed.replayed_workspace import keep_evaluations
from analytics.workspace import INCIDENT, INCIDENT_PAGE, RESTORE, Workspace
from jobs.cli import exit_codes
from jobs.cli.console import command_line, print_text
from jobs.cli.written_text import write_pieces, write_text
from jobs.restoring import write_restored
from jobs.spark.session import one_session
from jobs.workspaces.compared_states import Side, compared_states
from jobs.workspaces.kept_replay import of_folder, replay_into_folder
from jobs.workspaces.replayed import replayed
from reports.answers.restore import COMMANDS
from reports.incident import (
    MOST_DRAWN,
    Incident,
    head_of,
    html_of,
    incident_page,
    raw_sections,
    sections_of,
    summary_of,
)
from reports.incident_summary import Restored, commands_of, restored_of
from reports.layout.output_format import OutputFormat
from reports.row_formats import rendered

if TYPE_CHECKING:
    from jobs.cli.console import Console
    from jobs.workspaces.replayed import Replayed


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
    output_format: OutputFormat,
    **options: Any,  # noqa: ANN401 - of `replayed`, handed through
) -> int:
    """Write the folder, print the answer, and return the exit code.

    Raises:
        CannotTellError: The incident is not in the time of the dump.
        GroupscopeError: An INPUT, a side file or the folder is not what it has to be.
    """
    asked, out = forensics_options, forensics_options.out
    inputs, unread = replay_into_folder(console, out, needs=FORENSICS.needs, options=options)
    own = of_folder(out, options)
    quiet = replace(console, quiet=True)
    with (
        replayed(quiet, needs=FORENSICS.needs, out=out, **own) as state,
        ExitStack() as open_states,
    ):
        # Said before anything is asked: there may be no answer because of it.
        time = time_around(state, asked.around, asked.window_minutes)
        for each in time.warnings:
            console.warn(each)
        states: list[Replayed] = []

        def around(window: Window, groups: Sequence[str]) -> tuple[Replayed, Replayed]:
            console.say(f"forensics: before and after {iso_time(time.at)}")
            both = open_states.enter_context(
                compared_states(
                    quiet,
                    *_sides(out, window, state),
                    needs=ROWS_OF_STATES,
                    **{name: each for name, each in own.items() if name not in _OF_SIDES},
                    groups=tuple(groups),
                    exclude_groups=(),
                )
            )
            states.extend(both)
            return both

        answer = FORENSICS.ask(
            state,
            ForensicsSettings(
                asked.around,
                asked.window_minutes,
                asked.groups,
                asked.exclude_groups,
                asked.end_offsets,
                around,
            ),
        )
        before, after = states
        incident = _incident(
            answer, time, state, _restored(quiet, out, answer, (before, state)), out
        )
        keep_evaluations(Workspace(out), answer.tables_to_keep, state, FORENSICS.name)
        metadata = {
            **state.response_metadata,
            "input": list(inputs),
            "around": iso_time(time.at),
            "from": iso_time(time.window.begin),
            "to": iso_time(time.window.end),
            "groups": list(incident.groups),
            "summary": list(incident.summary),
            "restore": _given_back_metadata(incident.given_back),
            "cannot_tell": list(incident.cannot_tell),
            "gaps": gap_documents((*answer.gaps, *before.left_out, *after.left_out)),
        }
        code = _code(console, answer, unread, is_named=bool(asked.groups))
        _write(out, incident, state, {**metadata, "exit_code": code, "command": command_line()})
        console.say(f"forensics: {join(out, INCIDENT_PAGE)}")
        # What is printed is read as long as the states are there.
        print_text(
            chain(
                [head_of(incident, output_format)],
                rendered(sections_of(incident, output_format), output_format, metadata),
            )
        )
    return code


def _incident(answer: Answer, time: Around, state: Replayed, restored: str, out: str) -> Incident:
    given_back = _given_back(answer.figures[RESTORED], time, out)
    return Incident(
        around=time.at,
        begin=time.window.begin,
        end=time.window.end,
        groups=tuple(answer.figures[GROUPS]),
        tables=answer.long_tables,
        summary=summary_of(answer.rows(CAUSES), state.manifest, given_back),
        given_back=given_back,
        cannot_tell=answer.cannot_tell,
        restored=restored,
    )


def _given_back(restored: Answer, time: Around, out: str) -> Restored:
    """Return what `restore` gives back, in numbers."""
    script = join(absolute_location(join(out, RESTORE)), COMMANDS)
    return restored_of(
        restored.tables[OFFSETS], restored.tables[OF_GROUPS], time.window.begin, script
    )


def _given_back_metadata(restored: Restored) -> dict[str, Any]:
    return {
        **asdict(restored),
        "as_of": iso_time(restored.as_of),
        "commands": list(commands_of(restored)),
    }


def _restored(console: Console, out: str, answer: Answer, states: tuple[Replayed, Replayed]) -> str:
    """Write what can be given back; return what is said of it."""
    before, state = states
    folder, as_text = join(out, RESTORE), OutputFormat("text")
    text, _ = write_restored(
        console, before, state.of_groups(answer.figures[GROUPS]), answer.figures[RESTORED], folder,
        as_text,
        include_live=False,
    )  # fmt: skip
    return "".join(text)


_OF_SIDES: Final = (
    *("inputs", "as_of", "ends", "prefer_copy", "out", "max_undecoded"),
    *("groups", "exclude_groups"),
)


def _sides(out: str, window: Window, state: Replayed) -> tuple[Side, Side]:
    last = last_time(state.manifest)
    end = END if last is None or window.end >= last else milliseconds(window.end)
    return Side((out,), milliseconds(window.begin)), Side((out,), end)


def _code(console: Console, answer: Answer, unread: int, *, is_named: bool) -> int:
    for each in answer.cannot_tell:
        console.error(f"cannot tell: {each}")
    if unread or (is_named and (answer.cannot_tell or answer.rows_cannot_tell)):
        return exit_codes.CANNOT_TELL
    return exit_codes.DONE


def _write(out: str, incident: Incident, state: Replayed, document: dict[str, Any]) -> None:
    write_pieces(join(out, INCIDENT), rendered(raw_sections(incident), "json", document))
    history = drawn_history(state, incident.groups[:MOST_DRAWN])
    page = incident_page(incident, history, state.manifest, document)
    write_text(join(out, INCIDENT_PAGE), html_of(page))
