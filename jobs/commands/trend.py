"""The command `trend`: how audits changed from one to the next."""

from __future__ import annotations

from dataclasses import fields
from typing import TYPE_CHECKING, Any

import click

from jobs.cli.console import Console, pass_console
from jobs.cli.options.answer import rows_options, table_option
from jobs.cli.options.shared import (
    disk_size_option,
    out_options,
    output_options,
    spark_options,
)

if TYPE_CHECKING:
    from reports.layout.output_format import OutputFormat

EPILOG = """
\b
Examples:
  groupscope audit examples/kafka-4.3.1-failover --out audited
  groupscope trend audited
  groupscope trend audited --disk-size 500GB --out trend
"""


@click.command(epilog=EPILOG)
@click.argument("runs", metavar="RUN...", nargs=-1)
@click.option(
    "--from-tables",
    metavar="CATALOG.SCHEMA",
    help="Read the audits that --save-tables saved to this schema of Spark's catalogs, too, or "
    "instead of RUN.",
)
@click.option(
    "--cluster",
    metavar="NAME",
    help="The cluster of runs whose dumps do not say of which they are.",
)
@disk_size_option
@out_options("Write the page trend.html, trend.json and tables as Parquet into this folder.")
@table_option(
    "runs",
    beside=(
        *("rules", "findings", "changed_groups", "lag", "retention", "disks", "bytes"),
        "groups",
    ),
)
@rows_options
@spark_options
@output_options
@pass_console
def trend(console: Console, /, output_format: OutputFormat, **options: Any) -> int:  # noqa: ANN401
    """Show how audits changed from one to the next.

    RUN is the workspace that an audit wrote. Runs of a cluster are in the order of their
    instants, each compared with the one before it: lag, bytes, groups, expired offsets, rebalances
    and findings; what is new, what is gone, what got worse; and when a disk or a retention is
    reached at this rate. docs/trend.md says how.
    """
    # Arrow is heavy: --help answers without it.
    from jobs.trend import TrendOptions, trend_of  # noqa: PLC0415

    if not options["runs"] and options["from_tables"] is None:
        raise click.UsageError("give RUN..., or --from-tables CATALOG.SCHEMA")
    wanted = TrendOptions(**{each.name: options.pop(each.name) for each in fields(TrendOptions)})
    return trend_of(console, wanted, output_format)
