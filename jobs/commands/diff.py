"""The command `diff`: what changed between two instants, two lines of a log, or two dumps."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from analytics.replay.dump.choices import END, BeforeEnd
from jobs.cli.console import Console, pass_console, print_text
from jobs.cli.exit_codes import CANNOT_TELL, DIFFERENT, DONE, NOT_THERE
from jobs.cli.options.answer import rows_options, table_option
from jobs.cli.options.shared import (
    group_options,
    in_order,
    inputs_argument,
    output_options,
    spark_options,
)
from jobs.cli.options.state import Instant, asked_instant, assume_option
from jobs.cli.settings_files import settings_options, topic_ids_option

if TYPE_CHECKING:
    from analytics.questions.question import Answer
    from jobs.workspaces.compared_states import Side
    from jobs.workspaces.replayed import Replayed

EPILOG = """
\b
Examples:
  groupscope diff examples/kafka-4.3.1-failover --from 2026-11-21T09:20:00Z --to end
  groupscope diff examples/kafka-4.3.1-failover --from-copy broker-1 --group 'parcel-*'
"""

TABLES = ("groups", "offsets", "members", "share_partitions")

_instants = in_order(
    click.option(
        "--from",
        "since",
        type=Instant(),
        metavar="TIME",
        callback=asked_instant,
        help="The first instant: TIME, or -24h (before the end of the dump).",
    ),
    click.option(
        "--to",
        "until",
        type=Instant(),
        metavar="TIME",
        callback=asked_instant,
        help="The second.  [default: end]",
    ),
    click.option(
        "--from-copy", metavar="NAME", help="Where copies diverged, compare the line of this copy."
    ),
    click.option("--to-copy", metavar="NAME", help="With the line of this one."),
)


def _sides(
    console: Console,
    inputs: tuple[str, ...],
    since: int | BeforeEnd | str | None,
    until: int | BeforeEnd | str | None,
    copies: tuple[str | None, str | None],
) -> tuple[Side, Side]:
    """Return what is compared: two workspaces, or two states of one dump or workspace."""
    # Arrow is heavy: --help answers without it.
    from analytics.dump.files.inputs import recognize  # noqa: PLC0415
    from jobs.workspaces.compared_states import Side  # noqa: PLC0415

    if len(inputs) == 2 and all(recognize([each]).workspaces for each in inputs):
        if any(copies):
            raise click.UsageError(
                "--from-copy and --to-copy need the dump itself, not workspaces made of it"
            )
        return Side(inputs[:1], since), Side(inputs[1:], until)
    if since is None and until is None and not any(copies):
        raise click.UsageError(
            "nothing to compare: give --from TIME (and --to TIME), --from-copy NAME, or two "
            "workspaces"
        )
    if _is_backwards(since, until):
        raise click.UsageError("--from is later than --to: exchange them")
    console.detail(f"two states of {', '.join(inputs)}")
    return Side(inputs, since or END, prefer_copy=copies[0]), Side(
        inputs, until or END, prefer_copy=copies[1]
    )


def _is_backwards(since: int | BeforeEnd | str | None, until: int | BeforeEnd | str | None) -> bool:
    """Return whether the first instant is the later one, as far as that shows before reading."""
    if isinstance(since, BeforeEnd) and isinstance(until, BeforeEnd):
        return since.milliseconds < until.milliseconds
    if isinstance(since, int) and isinstance(until, int):
        return since > until
    return since == END and isinstance(until, int | BeforeEnd)


@click.command(epilog=EPILOG)
@inputs_argument
@_instants
@click.option("--fail-on-difference", is_flag=True, help="End with code 1 where something differs.")
@click.option(
    "--kafka-version", metavar="X.Y", help="The release whose rules apply.  [default: inferred]"
)
@topic_ids_option
@settings_options
@assume_option
@table_option(*TABLES)
@rows_options
@group_options
@click.option(
    "--topic-partition",
    metavar="TOPIC-N",
    help="The partition of a segment that is not in a partition directory.",
)
@click.option(
    "--strict-high-watermark",
    is_flag=True,
    help="Leave out records above the checkpointed high watermark.",
)
@spark_options
@output_options
@pass_console
def diff(  # noqa: PLR0913 - one parameter an option
    console: Console,
    /,
    *,
    inputs: tuple[str, ...],
    since: int | BeforeEnd | str | None,
    until: int | BeforeEnd | str | None,
    from_copy: str | None,
    to_copy: str | None,
    output_format: str,
    fail_on_difference: bool,
    **options: Any,  # noqa: ANN401
) -> int:
    """Show what changed between two instants or two dumps.

    Compares INPUT... at --from with itself at --to, two lines of a diverged dump (--from-copy,
    --to-copy), or two workspaces: offsets that moved, went back, vanished or appeared; groups and
    their members; share partitions. Where one side cannot tell, the row says so, with code 3.
    """
    # Arrow is heavy: --help answers without it.
    from analytics.gaps.gap import gap_documents  # noqa: PLC0415
    from analytics.questions.diff.question import DIFF, DiffSettings  # noqa: PLC0415
    from jobs.asking import report_answer  # noqa: PLC0415
    from jobs.workspaces.compared_states import (  # noqa: PLC0415
        compared_metadata,
        compared_states,
        gaps_of_both,
        left_out_of_both,
    )
    from reports.answers.diff import render_difference  # noqa: PLC0415

    sides = _sides(console, inputs, since, until, (from_copy, to_copy))
    with compared_states(console, *sides, needs=DIFF.needs, **options) as states:
        before, after = states
        for word, state, side in zip(("from", "to"), states, sides, strict=True):
            line = f", as {side.prefer_copy} has it" if side.prefer_copy else ""
            console.say(f"{word} {', '.join(state.inputs)}: {state.instant}{line}")
        answer = DIFF.ask(after, DiffSettings(before))
        report_answer(console, answer)
        metadata = {
            **compared_metadata(before, after),
            "cannot_tell": list(answer.cannot_tell),
            "gaps": gap_documents((*answer.gaps, *gaps_of_both(before, after))),
            "left_out": left_out_of_both(before, after),
        }
        text = render_difference(answer.long_tables, output_format, metadata)
        code = _exit_code(console, answer, states, fail_on_difference=fail_on_difference)
        # What is printed is read as long as the states are there.
        print_text(text)
    return code


def _exit_code(
    console: Console,
    answer: Answer,
    states: tuple[Replayed, Replayed],
    *,
    fail_on_difference: bool,
) -> int:
    """Return the exit code, and say what it is for where the rows alone do not."""
    # Arrow is heavy: --help answers without it.
    from analytics.questions.diff.question import DIFFERS, MISSING  # noqa: PLC0415

    if answer.rows_cannot_tell:
        console.error("cannot tell of some rows whether they differ; they say why")
    if answer.rows_cannot_tell or answer.cannot_tell:
        return CANNOT_TELL
    missing = answer.figures[MISSING]
    for name in missing:
        console.error(f"group {name} does not exist in either")
    code = DIFFERENT if fail_on_difference and answer.figures[DIFFERS] else DONE
    # What one state was made without (3) may differ, whatever else does.
    return max(*(each.exit_code for each in states), NOT_THERE if missing else DONE, code)
