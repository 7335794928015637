"""The command `region`: checkpoints kept outside of Kafka, against what groups committed."""

from __future__ import annotations

from dataclasses import fields
from typing import Any

import click

from jobs.cli.console import Console, pass_console
from jobs.cli.options.asking import asking_options
from jobs.cli.options.rows import Needed, table_option
from jobs.cli.options.shared import end_offsets_option, out_option

EPILOG = """
\b
Examples:
  groupscope region examples/region-checkpoints.jsonl
  groupscope region examples/region-checkpoints.jsonl --dump examples/kafka-4.3.1-failover
"""
START_POSITIONS = ("beginning", "end", "committed")


@click.command(epilog=EPILOG)
@click.argument("checkpoints", metavar="CHECKPOINTS...", nargs=-1, required=True)
@click.option(
    "--dump",
    "inputs",
    metavar="INPUT",
    multiple=True,
    help="What brokers wrote: a dump or a workspace; repeatable.",
)
@out_option
@click.option(
    "--checkpoint-group",
    metavar="GROUP",
    help="The group of checkpoints that name none: Spark's, Hudi's, a region's merge.",
)
@click.option(
    "--initial-offsets",
    metavar="FILE",
    help="Initial offsets of partitions, as CSV, JSON or Parquet: topic, partition, offset.",
)
@click.option(
    "--start-position",
    type=click.Choice(START_POSITIONS),
    help="Where reading starts in a partition that has neither.",
)
@end_offsets_option
@table_option(
    "region_checkpoints",
    beside=(
        "region_findings",
        "region_seek_plan",
        "region_drains",
        "region_operators",
        "region_checkpoint_offsets",
    ),
    needs={
        name: Needed("inputs", "--dump INPUT") for name in ("region_drains", "region_seek_plan")
    },
)
@asking_options
@pass_console
def region(
    console: Console,
    /,
    output_format: str,
    **options: Any,  # noqa: ANN401
) -> int:
    """Hold checkpoints kept outside of Kafka against committed offsets.

    CHECKPOINTS are files or folders: contributions of the operators of a consistent region or their
    merge, the checkpoint folder of a Spark query, Flink checkpoints exported as JSON, Hudi and
    Iceberg tables. Which are complete; with --dump whether their offsets were committed at one
    instant, and where members would read on if the latest were restored now. docs/region.md
    explains it.
    """
    if options["out"] is not None and not options["inputs"]:
        raise click.UsageError("--out needs --dump: it keeps the workspace of a dump")
    # Arrow is heavy: --help answers without it.
    from jobs.runs.region.run import Wanted, region_of  # noqa: PLC0415

    wanted = Wanted(**{each.name: options.pop(each.name) for each in fields(Wanted)})
    answer, code = region_of(console, wanted, output_format, **options)
    click.echo(answer)
    return code
