"""The command `decode`: every record of a dump into tables."""

from __future__ import annotations

from typing import Any

import click

from jobs.cli.console import Console, pass_console, print_text
from jobs.cli.options.answer import max_undecoded_option
from jobs.cli.options.shared import (
    input_options,
    inputs_argument,
    out_option,
    output_options,
    resume_option,
    selection_options,
    spark_options,
    summary_format_options,
    workspace_folder,
)

EPILOG = """
\b
Examples:
  groupscope decode examples/kafka-4.3.1-failover --out decoded
  groupscope decode examples/kafka-4.3.1-failover --out parcels --group 'parcel-*'
"""


@click.command(epilog=EPILOG)
@inputs_argument
@out_option
@resume_option
@max_undecoded_option
@summary_format_options
@selection_options
@input_options
@spark_options
@output_options
@pass_console
def decode(console: Console, /, out: str | None, output_format: str, **options: Any) -> int:  # noqa: ANN401
    """Write every record of a dump into tables.

    Writes one Parquet table for each record type, and beside them control_markers, undecoded
    and manifest.json: what was read, how far it can be trusted, and where every record went. A
    line of history that did not survive an election is decoded under diverged/.
    """
    # Spark and Arrow are heavy: --help answers without them.
    from jobs.workspaces.decoding import decode_into  # noqa: PLC0415
    from reports.run_summary import decode_summary  # noqa: PLC0415

    limit = options.pop("max_undecoded")
    with workspace_folder(out, console) as folder:
        result = decode_into(folder, console, **options)
    print_text(decode_summary(result.manifest, output_format))
    return result.exit_code(limit)
