"""The command `report`: the page of an audited workspace, made again."""

from __future__ import annotations

import click

from jobs.cli.console import Console, pass_console
from jobs.cli.exit_codes import DONE
from jobs.cli.options.shared import output_options
from jobs.cli.page_width import page_width

EPILOG = """
\b
Examples:
  groupscope audit examples/kafka-4.3.1-failover --out audited
  groupscope report audited
  groupscope report audited --format markdown --output ticket.md
"""
FORMATS = ("html", "text", "markdown", "json")


@click.command(epilog=EPILOG)
@click.argument("workspace", metavar="WORKSPACE")
@click.option(
    "--output",
    metavar="FILE",
    help="Write it into this file.  [default: WORKSPACE/report/index.html, or stdout]",
)
@click.option(
    "--format",
    "output_format",
    type=click.Choice(FORMATS),
    default="html",
    show_default=True,
    help="Format of the page; all but html go to stdout.",
)
@output_options
@pass_console
def report(console: Console, /, workspace: str, output: str | None, output_format: str) -> int:
    """Write the page of a workspace.

    WORKSPACE is what `audit` made. One file, which loads nothing: what was found,
    what cannot be told, every group, and where each number comes from. docs/report.md says how to
    read it.
    """
    # Arrow is heavy: --help answers without it.
    from jobs.audit.page import report_of  # noqa: PLC0415

    answer = report_of(console, workspace, output, output_format, page_width(output))
    if answer:
        click.echo(answer)
    return DONE
