"""The command `inspect`: what is in a dump, from headers and checkpoints alone; starts no Spark."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import click

from jobs.cli.console import Console, pass_console, print_text
from jobs.cli.exit_codes import CANNOT_TELL, DONE
from jobs.cli.options.shared import format_options, input_options, inputs_argument, output_options

if TYPE_CHECKING:
    from reports.layout.output_format import OutputFormat


EPILOG = """
\b
Examples:
  groupscope inspect examples/kafka-4.3.1-failover
  groupscope inspect dead=examples/kafka-4.3.1-failover/broker-1 --format json
"""


@click.command(epilog=EPILOG)
@inputs_argument
@format_options("text", "json")
@click.option(
    "--check-crc",
    is_flag=True,
    help="Verify the checksum of every batch; reads all bytes.",
)
@input_options
@output_options
@pass_console
def inspect(console: Console, /, output_format: OutputFormat, **options: Any) -> int:  # noqa: ANN401
    """Show what is in a dump.

    Lists the brokers' copies and internal partitions, the time they span, what is missing,
    damaged or compacted, where copies diverged, and what the dump can and cannot answer. Reads
    only headers and checkpoints; record types come from a sample.
    """
    # --help answers without numpy and all that stands on it.
    from jobs.inspection import inspect_inputs, inspection_document  # noqa: PLC0415
    from reports.inspection import render  # noqa: PLC0415

    found = inspect_inputs(console, **options)
    if output_format == "json":
        document = inspection_document(found, options["inputs"])
        print_text(json.dumps(document, indent=1, ensure_ascii=False))
    else:
        print_text(render(found, output_format.width))
    # What could be read was shown; that something could not shows in the code.
    return CANNOT_TELL if "dialect" not in found and found.get("unreadable") else DONE
