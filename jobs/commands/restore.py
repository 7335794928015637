"""The command `restore`: files and commands that give groups their committed offsets back."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import click

from analytics.replay.dump.choices import END, BeforeEnd
from jobs.cli.console import Console, pass_console, print_text
from jobs.cli.options.answer import asking_options, table_option
from jobs.cli.options.shared import end_offsets_option, inputs_argument

if TYPE_CHECKING:
    from reports.layout.output_format import OutputFormat

EPILOG = """
\b
Examples:
  groupscope restore examples/kafka-4.3.1-failover --group parcel-router \\
      --as-of 2026-11-21T09:17:00Z --out rescue
  groupscope restore examples/kafka-4.3.1-failover --prefer-copy broker-1 --group '*' \\
      --as-of end --against examples/kafka-4.3.1-failover --out rescue
"""


@click.command(epilog=EPILOG)
@inputs_argument
@click.option("--out", metavar="DIR", required=True, help="Write the files into this folder.")
@click.option(
    "--against",
    metavar="INPUT",
    multiple=True,
    help="The present state: a dump or a workspace; repeatable.  [default: the end of INPUT]",
)
@click.option(
    "--include-live",
    is_flag=True,
    help="Also rewind groups that have moved on since.",
)
@end_offsets_option
@table_option("groups", "offsets")
@asking_options
@pass_console
def restore(  # noqa: PLR0913 - one parameter an option
    console: Console,
    /,
    *,
    inputs: tuple[str, ...],
    out: str,
    against: tuple[str, ...],
    include_live: bool,
    end_offsets: str | None,
    output_format: OutputFormat,
    as_of: int | BeforeEnd | str | None,
    ends: Mapping[tuple[str, int], int],
    groups: tuple[str, ...],
    prefer_copy: str | None,
    **options: Any,  # noqa: ANN401
) -> int:
    """Write files and commands that give groups their offsets back.

    For each --group (a name, glob* or /regex/) a file that kafka-consumer-groups --reset-offsets
    --from-file takes, commands.sh with a dry run first, and refused.csv with what is not given
    back, and why: the group has moved on since, the log is another one or too short, a transaction
    is pending. INPUT at --as-of is compared with --against, or with its own end.
    """
    if not groups:
        raise click.UsageError("--group is required: give --group NAME, or --group '*' for all")
    if as_of is None and not ends and not against:
        raise click.UsageError("--as-of is required: give a TIME (with --against also `end`)")
    # Arrow is heavy: --help answers without it.
    from analytics.questions.restore.question import RESTORE, RestoreSettings  # noqa: PLC0415
    from jobs.asking import report_answer  # noqa: PLC0415
    from jobs.restoring import check_folder, write_restored  # noqa: PLC0415
    from jobs.workspaces.compared_states import Side, compared_states  # noqa: PLC0415

    then = Side(inputs, as_of, ends, prefer_copy)
    now = Side(against) if against else Side(inputs, END, prefer_copy=prefer_copy)
    check_folder(out)
    with compared_states(console, then, now, needs=RESTORE.needs, groups=groups, **options) as (
        past,
        present,
    ):
        answer = RESTORE.ask(past, RestoreSettings(present, end_offsets, include_live))
        report_answer(console, answer)
        text, code = write_restored(
            console, past, present, answer, out, output_format, include_live=include_live
        )
    print_text(text)
    return code
