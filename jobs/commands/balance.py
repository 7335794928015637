"""The command `balance`: how even assignments are, why not, what another assignor would give."""

from __future__ import annotations

from typing import Any

import click

from jobs.cli.console import Console, pass_console
from jobs.cli.options.asking import asking_options
from jobs.cli.options.fail_on import fail_on_option
from jobs.cli.options.rows import table_option
from jobs.cli.options.shared import inputs_argument, out_option

EPILOG = """
\b
Examples:
  groupscope balance examples/kafka-4.3.1-failover
  groupscope balance examples/kafka-4.3.1-failover --group cod-settlement --history
"""


@click.command(epilog=EPILOG)
@inputs_argument
@out_option
@click.option(
    "--history",
    "through_history",
    is_flag=True,
    help="Judge every epoch, and not only the last one.",
)
@fail_on_option()
@table_option("balance", beside=("alternatives",))
@asking_options
@pass_console
def balance(console: Console, /, output_format: str, **options: Any) -> int:  # noqa: ANN401
    """Show how evenly partitions are assigned, and why not.

    For each group with members: how many partitions each member has, whether that could be more
    even, and which partitions have no owner; then what other assignors would give the same
    members, and how much they would move. docs/balance.md explains score and verdicts.
    """
    # Spark and Arrow are heavy: --help answers without them.
    from jobs.runs.balance.run import balance_inputs  # noqa: PLC0415

    answer, code = balance_inputs(console, output_format, **options)
    if answer:
        click.echo(answer)
    return code
