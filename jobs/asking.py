"""A question asked on the command line: of what, how it is shown, and the exit code."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, TypeVar

import click

from analytics.replayed.kept_evaluations import keep_evaluations
from analytics.workspace import Workspace
from jobs.cli.exit_codes import CANNOT_TELL, DONE, NOT_THERE
from jobs.cli.incomplete_groups import report_groups
from jobs.runs.audit.findings_of import failing
from jobs.workspaces.replayed import replayed

if TYPE_CHECKING:
    from analytics.questions.answer import Answer
    from analytics.questions.question import Question
    from jobs.cli.console import Console
    from jobs.workspaces.replayed import Replayed
    from reports.layout.output_format import OutputFormat

    Show = Callable[[Replayed, Answer, OutputFormat, Mapping[str, Any]], str]
    """Takes the answer, its format and what JSON has beside the tables; returns the text."""

S = TypeVar("S")


def ask_and_show(
    console: Console,
    question: Question[Any, S],
    settings: S,
    show: Show,
    output_format: OutputFormat,
    *,
    out: str | None,
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
        **options: As `asking_options` and `fail_on_option` declare them.

    Raises:
        GroupscopeError: An INPUT or a side file is not what it has to be.
    """
    with replayed(console, needs=question.needs_of(settings), out=out, **options) as state:
        answer = question.ask(state, settings)
        report_answer(console, answer)
        if out is not None:
            keep_evaluations(Workspace(out), answer.tables, state)
        metadata = {
            **state.response_metadata,
            "cannot_tell": list(answer.cannot_tell),
            **answer.summary,
        }
        text = show(state, answer, output_format, metadata)
        code = answer_exit_code(state, answer) or failing(console, state, answer.tables)
    if text:
        click.echo(text)
    return code


def report_answer(console: Console, answer: Answer) -> None:
    """Say by what a question was answered, and what the rows do not show."""
    if answer.groups is not None:
        report_groups(console, answer.groups)
    for each in answer.statements:
        console.say(each)
    for each in answer.warnings:
        console.warn(each)
    for each in answer.doubts:
        console.error(f"cannot tell: {each}")


def answer_exit_code(state: Replayed, answer: Answer) -> int:
    """Return 3 where the answer is not whole, 1 where a group that was named is not there, else 0.

    That something cannot be told goes before all else: a group may be among it.
    """
    if answer.cannot_tell or state.exit_code:
        return state.exit_code or CANNOT_TELL
    return NOT_THERE if answer.groups is not None and answer.groups.missing else DONE
