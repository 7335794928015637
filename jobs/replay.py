"""The command `replay`: what the coordinators knew at an instant."""

from __future__ import annotations

from typing import Any

import click

from jobs.console import Console, pass_console
from jobs.instant import Instant
from jobs.options import (
    input_options,
    inputs_argument,
    out_option,
    output_options,
    selection_options,
    spark_options,
    summary_format_option,
)
from jobs.temporary_workspace import workspace_folder

EPILOG = """
\b
Examples:
  groupscope replay examples/kafka-4.3.1-failover --out state
  groupscope replay examples/kafka-4.3.1-failover --as-of-offset __consumer_offsets:9:200
"""


def _ends(
    _ctx: click.Context, parameter: click.Parameter, value: tuple[str, ...]
) -> dict[tuple[str, int], int]:
    ends: dict[tuple[str, int], int] = {}
    for text in value:
        topic, _, place = text.strip().partition(":")
        partition, _, offset = place.partition(":")
        if not (topic and partition.isdecimal() and offset.isdecimal()):
            raise click.BadParameter(
                f"{text!r}: give TOPIC:PARTITION:OFFSET, as in __consumer_offsets:17:4711",
                param=parameter,
            )
        ends[topic, int(partition)] = int(offset)
    return ends


def _release(_ctx: click.Context, parameter: click.Parameter, value: str | None) -> str | None:
    if value is not None and not all(part.isdecimal() for part in value.split(".")):
        raise click.BadParameter(f"{value!r}: give a release, as in 3.9 or 4.3.1", param=parameter)
    return value


@click.command(epilog=EPILOG)
@inputs_argument
@out_option
@click.option(
    "--as-of",
    type=Instant(),
    metavar="TIME",
    help="Count what was appended at or before this time.  [default: end]",
)
@click.option(
    "--as-of-offset",
    "ends",
    metavar="TOPIC:PARTITION:OFFSET",
    multiple=True,
    callback=_ends,
    help="Count what lies below this offset of a partition; repeatable.",
)
@click.option(
    "--kafka-version",
    metavar="X.Y",
    callback=_release,
    help="The release whose rules apply.  [default: inferred, and stated]",
)
@summary_format_option
@selection_options
@input_options
@spark_options
@output_options
@pass_console
def replay(console: Console, /, out: str | None, output_format: str, **options: Any) -> int:  # noqa: ANN401
    """Compute what the coordinators knew at an instant.

    Writes state/ into the workspace: committed and pending offsets, groups, members, assignments,
    share partitions and their batches, topics, settings and partition leaders. A dump is decoded
    first; the tables of a workspace are used as they are.
    """
    # Spark and Arrow are heavy: --help answers without them.
    from jobs.replay_run import replay_into  # noqa: PLC0415
    from reports.replay_summary import shown  # noqa: PLC0415

    with workspace_folder(out, console) as folder:
        result = replay_into(folder, console, **options)
    click.echo(shown(result.manifest, output_format))
    return result.exit_code
