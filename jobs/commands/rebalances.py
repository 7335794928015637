"""The command `rebalances`: who came and went before each, and when it was too much."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from jobs.cli.console import Console, pass_console
from jobs.cli.options.answer import asking_options, fail_on_option, table_option
from jobs.cli.options.shared import inputs_argument, out_option
from jobs.cli.options.state import Instant
from schemas.evaluation_rules import rebalance_rules

if TYPE_CHECKING:
    from analytics.replay.dump.choices import BeforeEnd
    from reports.layout.output_format import OutputFormat

EPILOG = """
\b
Examples:
  groupscope rebalances examples/kafka-4.3.1-failover
  groupscope rebalances examples/kafka-4.3.1-failover --group 'parcel-*' --storm-epochs 5
"""


@click.command(epilog=EPILOG)
@inputs_argument
@out_option
@click.option(
    "--from",
    "time_from",
    type=Instant(),
    metavar="TIME",
    help="Only epochs that began at or after this time.",
)
@click.option(
    "--to",
    "time_to",
    type=Instant(),
    metavar="TIME",
    help="Only epochs that began at or before this time.",
)
@click.option(
    "--storm-epochs",
    type=click.IntRange(min=2),
    help="So many epochs within --storm-minutes are a storm.  "
    f"[default: {rebalance_rules().storm.epochs}]",
)
@click.option(
    "--storm-minutes",
    type=click.FloatRange(min=0, min_open=True),
    help="The minutes within which --storm-epochs are a storm.  "
    f"[default: {rebalance_rules().storm.minutes:g}]",
)
@fail_on_option()
@table_option("epochs", beside=("storms", "churn", "standing", "causes"))
@asking_options
@pass_console
def rebalances(
    console: Console,
    /,
    output_format: OutputFormat,
    time_from: int | BeforeEnd | None,
    time_to: int | BeforeEnd | None,
    storm_epochs: int | None,
    storm_minutes: float | None,
    **options: Any,  # noqa: ANN401
) -> int:
    """Show which members joined and left before each rebalance.

    For each group: generations or group epochs per hour; who joined, left, restarted or changed
    its subscription before each; what else led to it (a lost leader, another assignor, a topic
    that grew); generations that left no record; what a failed coordinator had stored; storms; and
    what stands still. docs/rebalances.md explains them. Whether a member timed out or left by
    itself is not recorded.
    """
    # Spark and Arrow are heavy: --help answers without them.
    from analytics.questions.rebalances.question import REBALANCES, RebalanceSettings  # noqa: PLC0415
    from jobs.asking import PrintedAnswer, ask_and_show  # noqa: PLC0415
    from reports.answers.rebalances import rebalances_text  # noqa: PLC0415

    return ask_and_show(
        console,
        REBALANCES,
        RebalanceSettings(time_from, time_to, storm_epochs, storm_minutes),
        lambda _, answer, wanted, metadata: PrintedAnswer(
            rebalances_text(answer.long_tables, wanted, metadata)
        ),
        output_format,
        **options,
    )
