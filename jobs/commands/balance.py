"""The command `balance`: how even assignments are, why not, what another assignor would give."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from jobs.cli.console import Console, pass_console
from jobs.cli.options.answer import asking_options, fail_on_option, table_option
from jobs.cli.options.shared import inputs_argument, out_option

if TYPE_CHECKING:
    from reports.layout.output_format import OutputFormat

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
    is_flag=True,
    help="Judge every epoch, and not only the last one.",
)
@fail_on_option()
@table_option("balance", beside=("alternatives",))
@asking_options
@pass_console
def balance(
    console: Console,
    /,
    output_format: OutputFormat,
    *,
    history: bool,
    **options: Any,  # noqa: ANN401
) -> int:
    """Show how evenly partitions are assigned, and why not.

    For each group with members: how many partitions each member has, whether that could be more
    even, and which partitions have no owner; then what other assignors would give the same
    members, and how much they would move. docs/balance.md explains score and verdicts.
    """
    # Spark and Arrow are heavy: --help answers without them.
    from analytics.questions.balance.question import BALANCE, BalanceSettings  # noqa: PLC0415
    from jobs.asking import PrintedAnswer, ask_and_show  # noqa: PLC0415
    from reports.answers.balance import balance_text  # noqa: PLC0415

    return ask_and_show(
        console,
        BALANCE,
        BalanceSettings(history),
        lambda _, answer, wanted, metadata: PrintedAnswer(
            balance_text(
                answer.long_tables,
                wanted,
                metadata,
                with_times=history,
            )
        ),
        output_format,
        **options,
    )
