"""The command `forensics`: what an incident did to groups, as the page that a review wants."""

from __future__ import annotations

from dataclasses import fields
from typing import TYPE_CHECKING, Any

import click

from jobs.cli.console import Console, pass_console
from jobs.cli.options.answer import asking_options, table_option
from jobs.cli.options.shared import end_offsets_option, inputs_argument, out_options
from jobs.cli.options.state import Instant

if TYPE_CHECKING:
    from reports.layout.output_format import OutputFormat

EPILOG = """
\b
Examples:
  groupscope forensics examples/kafka-4.3.1-failover --group parcel-router \\
      --around 2026-11-21T09:20:36Z --out incident
  groupscope forensics examples/kafka-4.3.1-failover --around 2026-11-21T09:20:36Z --out incident
"""


@click.command(epilog=EPILOG)
@inputs_argument
@out_options("Write the page and files into this folder.", required=True)
@click.option(
    "--around", type=Instant(), metavar="TIME", required=True, help="When the incident was."
)
@click.option(
    "--window-minutes",
    type=click.FloatRange(min=0, min_open=True),
    default=2.0,
    show_default=True,
    help="So long before and after the incident.",
)
@end_offsets_option
@table_option(
    "verdicts", beside=("causes", "costs", "changes", "owners", "events", "cluster", "others")
)
@asking_options
@pass_console
def forensics(console: Console, /, output_format: OutputFormat, **options: Any) -> int:  # noqa: ANN401
    """Write the page that an incident review wants.

    For each --group (a name, glob* or /regex/; without it every group that something happened to):
    what was lost or moved and why, offsets and owners before and after, events in order with
    elections, transactions and settings among them, which other groups suffered at once, and what
    `restore` gives back. DIR/report/incident.html is the page, DIR/incident.json its rows,
    DIR/restore the files.
    """
    # Arrow is heavy: --help answers without it.
    from jobs.forensics import ForensicsOptions, forensics_of  # noqa: PLC0415

    wanted = ForensicsOptions(
        **{each.name: options.pop(each.name) for each in fields(ForensicsOptions)}
    )
    return forensics_of(console, wanted, output_format, **options)
