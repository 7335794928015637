"""The command `restore`: files and commands that give groups their committed offsets back."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import click

from analytics.replay.dump.written_instants import END, BeforeEnd
from jobs.cli.console import Console, pass_console
from jobs.cli.options.asking import asking_options
from jobs.cli.options.rows import table_option
from jobs.cli.options.shared import end_offsets_option, inputs_argument

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
    output_format: str,
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
    from jobs.runs.restore.run import Wanted, restore_into  # noqa: PLC0415
    from jobs.workspaces.compared_states import Side  # noqa: PLC0415

    then = Side(inputs, as_of, ends, prefer_copy)
    now = Side(against) if against else Side(inputs, END, prefer_copy=prefer_copy)
    answer, code = restore_into(
        console,
        then,
        now,
        Wanted(out, end_offsets, include_live, output_format),
        groups=groups,
        **options,
    )
    click.echo(answer)
    return code
