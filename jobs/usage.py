"""The command `usage`: what fills the internal topics, and who writes it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from jobs.cli.rows_options import rows_options, table_option
from jobs.console import Console, pass_console
from jobs.options import (
    in_order,
    input_options,
    inputs_argument,
    named_groups_options,
    out_option,
    output_options,
    spark_options,
)
from jobs.settings_files import settings_options

if TYPE_CHECKING:
    from reports.layout.output_format import OutputFormat

EPILOG = """
\b
Examples:
  groupscope usage examples/kafka-4.3.1-failover
  groupscope usage examples/kafka-4.3.1-failover --by group --top 5
"""
BY = ("record-type", "group", "partition", "topic")

_options = in_order(
    rows_options, named_groups_options, input_options, spark_options, output_options
)


@click.command(epilog=EPILOG)
@inputs_argument
@out_option
@click.option(
    "--by",
    type=click.Choice(BY),
    default=BY[0],
    show_default=True,
    help="Add records and bytes up by this.",
)
@table_option("usage", beside=("log_cleaning", "partition_usage", "topic_usage"))
@settings_options
@_options
@pass_console
def usage(
    console: Console,
    /,
    output_format: OutputFormat,
    by: str,
    broker_configs: tuple[str, ...],
    config: str | None,
    **options: Any,  # noqa: ANN401
) -> int:
    """Show what fills the internal topics.

    Every byte of their files: batch headers, records by partition, group and type, control records,
    and what is neither; which records are the last of their key and which are dead; whether the
    cleaner keeps up, and what it would leave. docs/usage.md explains all of it.
    """
    # Arrow is heavy: --help answers without it.
    from jobs.runs.usage import Wanted, usage_of  # noqa: PLC0415

    answer, code = usage_of(console, Wanted(by, broker_configs, config), output_format, **options)
    click.echo(answer)
    return code
