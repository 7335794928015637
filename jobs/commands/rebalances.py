"""The command `rebalances`: who came and went before each, and when it was too much."""

from __future__ import annotations

from typing import Any

import click

from jobs.cli.console import Console, pass_console
from jobs.cli.options.asking import asking_options
from jobs.cli.options.fail_on import fail_on_option
from jobs.cli.options.instant import Instant
from jobs.cli.options.rows import table_option
from jobs.cli.options.shared import inputs_argument, out_option
from schemas.evaluation_rules import rebalance_rules

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
    f"[default: {rebalance_rules().storm_epochs}]",
)
@click.option(
    "--storm-minutes",
    type=click.FloatRange(min=0, min_open=True),
    help="The minutes within which --storm-epochs are a storm.  "
    f"[default: {rebalance_rules().storm_minutes:g}]",
)
@fail_on_option()
@table_option("epochs", beside=("storms", "churn", "standing", "causes"))
@asking_options
@pass_console
def rebalances(console: Console, /, output_format: str, **options: Any) -> int:  # noqa: ANN401
    """Show which members joined and left before each rebalance.

    For each group: generations or group epochs per hour; who joined, left, restarted or changed
    its subscription before each; what else led to it (a lost leader, another assignor, a topic
    that grew); generations that left no record; what a failed coordinator had stored; storms; and
    what stands still. docs/rebalances.md explains them. Whether a member timed out or left by
    itself is not recorded.
    """
    # Spark and Arrow are heavy: --help answers without them.
    from jobs.runs.rebalances.run import rebalances_of_inputs  # noqa: PLC0415

    answer, code = rebalances_of_inputs(console, output_format, **options)
    click.echo(answer)
    return code
