"""The command `list`: the groups, as Kafka's own tools list them, at any instant."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from jobs.cli.console import Console, pass_console
from jobs.cli.options.answer import asking_options
from jobs.cli.options.shared import inputs_argument, out_option

if TYPE_CHECKING:
    from reports.layout.output_format import OutputFormat

EPILOG = """
\b
Examples:
  groupscope list examples/kafka-4.3.1-failover
  groupscope list examples/kafka-4.3.1-failover --state --type --group 'parcel-*'
"""


@click.command(name="list", epilog=EPILOG)
@inputs_argument
@out_option
@click.option("--state", "with_state", is_flag=True, help="Show the state of each group.")
@click.option("--type", "with_type", is_flag=True, help="Show the type of each group.")
@asking_options
@pass_console
def list_(
    console: Console,
    /,
    output_format: OutputFormat,
    with_state: bool,  # noqa: FBT001 - a flag of the command line
    with_type: bool,  # noqa: FBT001
    **options: Any,  # noqa: ANN401
) -> int:
    """List the groups.

    Prints what kafka-groups --list prints or, with --state or --type, what
    kafka-consumer-groups --list prints, for groups of all types. What the dump cannot tell is
    said on stderr, with exit code 3.
    """
    # Arrow is heavy: --help answers without it.
    from analytics.questions.describe.question import LIST, ListSettings  # noqa: PLC0415
    from jobs.asking import PrintedAnswer, ask_and_show  # noqa: PLC0415
    from reports.describe.answer import list_text  # noqa: PLC0415

    names = ["group_id", *["type"] * with_type, *["state"] * with_state]
    if not (with_state or with_type):
        names += ["type", "protocol_type"]
    return ask_and_show(
        console,
        LIST,
        ListSettings(),
        lambda _, answer, wanted, metadata: PrintedAnswer(
            list_text(answer.figures["groups"], names, wanted, metadata)
        ),
        output_format,
        **options,
    )
