"""A question asked on the command line: of what, how it is shown, and the exit code."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final, NamedTuple, TypeVar

import click

from analytics.errors import SettingRefusedError
from analytics.gaps.gap import gap_documents, words_of
from analytics.questions.findings.findings_of import as_severe, findings_of, input_words
from analytics.replayed.replayed_workspace import keep_evaluations, refuse_audited
from analytics.workspace import Workspace
from jobs.cli.console import print_text
from jobs.cli.exit_codes import CANNOT_TELL, DONE, SEVERE_FINDING
from jobs.cli.incomplete_groups import groups_exit_code, report_groups
from jobs.cli.options.answer import NEVER
from jobs.workspaces.replayed import replayed
from reports.plain_text import count, duration, size_of


class PrintedAnswer(NamedTuple):
    """What is printed.

    Attributes:
        text: For stdout.
        exit_code: Of what was compared; None where the tables alone decide.
        has_statements: The text has the statements and warnings of the answer.
    """

    text: Text
    exit_code: int | None = None
    has_statements: bool = False


if TYPE_CHECKING:
    from analytics.questions.question import Answer, Question
    from jobs.cli.console import Console
    from jobs.workspaces.replayed import Replayed
    from reports.layout.output_format import OutputFormat
    from reports.row_formats import Text

    Show = Callable[[Replayed, Answer, OutputFormat, Mapping[str, Any]], PrintedAnswer]
    """Takes the answer, its format and what JSON has beside the tables."""

S = TypeVar("S")


def ask_and_show(
    console: Console,
    question: Question[Any, S],
    settings: S,
    show: Show,
    output_format: OutputFormat,
    *,
    out: str | None,
    shown_needs: tuple[str, ...] = (),
    **options: Any,  # noqa: ANN401 - of `replayed`, handed through
) -> int:
    """Ask a question, print the answer and return the exit code.

    Args:
        console: Where it is said what the rows do not show.
        question: What is asked.
        settings: What of it exactly.
        show: Makes the text.
        output_format: The format of the text.
        out: `--out`: the workspace in which the tables are kept.
        shown_needs: The state tables that `show` reads.
        **options: As `asking_options` and `fail_on_option` declare them.

    Raises:
        GroupscopeError: An INPUT or a side file is not what it has to be.
        UsageError: A setting is at odds with another, or with the dump.
    """
    needs = tuple(dict.fromkeys((*question.needs_of(settings), *shown_needs)))
    with replayed(console, needs=needs, out=out, **options) as state:
        if out is not None:
            refuse_audited(Workspace(out), state)
        try:
            answer = question.ask(state, settings)
        except SettingRefusedError as error:
            # Click shows how the command is used.
            raise click.UsageError(str(error)) from error
        if out is not None and answer.tables_to_keep:
            is_usual = settings == type(settings)()
            keep_evaluations(
                Workspace(out), answer.tables_to_keep, state, question.name, is_usual=is_usual
            )
        metadata = {
            **state.response_metadata,
            "cannot_tell": [*answer.cannot_tell, *words_of(state.uncertain)],
            "gaps": gap_documents((*answer.gaps, *state.gaps)),
            **answer.summary,
        }
        shown = show(state, answer, output_format, metadata)
        if shown.has_statements:
            answer = replace(answer, statements=(), warnings=())
        report_answer(console, answer)
        if shown.exit_code is None:
            code = answer_exit_code(state, answer) or failing(console, state, answer)
        else:
            # What cannot be told (3) goes before a missing group, and rows that differ (1).
            code = max(groups_exit_code(answer.groups), state.exit_code, shown.exit_code)
        # What is printed is read as long as the state is there.
        print_text(shown.text)
    return code


def report_answer(console: Console, answer: Answer) -> None:
    """Say by what a question was answered, and what the rows do not show."""
    if answer.groups is not None:
        report_groups(console, answer.groups)
    for each in answer.statements:
        console.say(each)
    for each in answer.warnings:
        console.warn(each)
    for doubt in answer.doubts:
        console.error(f"cannot tell: {doubt.words}")


def answer_exit_code(state: Replayed, answer: Answer) -> int:
    """Return 3 where the answer is not whole, 1 where a group that was named is not there, else 0.

    That something cannot be told goes before all else: a group may be among it.
    """
    if state.exit_code or answer.doubts or answer.rows_cannot_tell:
        return state.exit_code or CANNOT_TELL
    return groups_exit_code(answer.groups)


PHRASING: Final = {"bytes": size_of, "duration": duration}
"""How findings say bytes and durations."""


def failing(console: Console, state: Replayed, answer: Answer) -> int:
    """Return the exit code of `--fail-on` for a question's tables, and say what was found.

    Args:
        console: Where it is said.
        state: With what `--fail-on` asks for.
        answer: To the question.
    """
    if state.fail_on == NEVER:
        return DONE
    tables = answer.long_tables
    # Only messages are printed here, no suggestions.
    findings = findings_of(state, tables, input_words(state.inputs, {}), PHRASING).findings
    severe = as_severe(findings, state.fail_on)
    for messages in severe.pieces(["message"]):
        for message in messages["message"].to_pylist():
            console.error(message)
    if severe.num_rows:
        console.error(f"--fail-on {state.fail_on}: {count(severe.num_rows, 'finding')}")
    return SEVERE_FINDING if severe.num_rows else DONE
