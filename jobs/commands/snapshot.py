"""The command `snapshot`: a dump of a running cluster, by the Kafka protocol; starts no Spark."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

import click
import msgspec

from analytics.locations import is_uri, local_path
from jobs.cli.console import Console, pass_console, print_text
from jobs.cli.exit_codes import CANNOT_TELL, DONE
from jobs.cli.options.shared import output_options, summary_format_options

if TYPE_CHECKING:
    from reports.layout.output_format import OutputFormat

EPILOG = """
\b
Examples:
  groupscope snapshot --bootstrap-server localhost:9092 --out dump
  groupscope snapshot --bootstrap-server broker-1:9093,broker-2:9093 \\
      --command-config client.properties --max-rate 20000000 --out dump
"""


def _local_folder(ctx: click.Context, parameter: click.Parameter, value: str) -> Path:
    if not value or (is_uri(value) and not value.lower().startswith("file:")):
        raise click.BadParameter("a folder of this machine is needed", ctx=ctx, param=parameter)
    return Path(local_path(value))


@click.command(epilog=EPILOG)
@click.option(
    "--bootstrap-server",
    metavar="HOST:PORT",
    required=True,
    help="Where the cluster is found; several with commas.",
)
@click.option(
    "--command-config",
    metavar="FILE",
    help="Client properties as Kafka's tools take them: SASL, TLS with PEM files.",
)
@click.option(
    "--out",
    metavar="DIR",
    required=True,
    callback=_local_folder,
    help="Write the dump into this folder, which is new or empty.",
)
@click.option(
    "--timeout",
    metavar="SECONDS",
    type=click.FloatRange(min=0.1, max=3600),
    default=30.0,
    show_default=True,
    help="Give up what is not answered within this time.",
)
@click.option(
    "--max-rate",
    metavar="BYTES",
    type=click.IntRange(min=1),
    help="Fetch no more bytes a second than this, on average.",
)
@click.option(
    "--max-bytes",
    metavar="BYTES",
    type=click.IntRange(min=1),
    help="Fetch no more than this of all logs; the exit code is 3 where that is not all.",
)
@summary_format_options
@output_options
@pass_console
def snapshot(
    console: Console,
    /,
    *,
    bootstrap_server: str,
    command_config: str | None,
    out: Path,
    timeout: float,
    output_format: OutputFormat,
    **most: int | None,
) -> int:
    """Take a dump of a running cluster.

    Fetches the record batches of __consumer_offsets, __share_group_state and __transaction_state as
    they lie in the brokers' logs, up to where these end when it begins, and writes them as a log
    directory that every command takes as INPUT. snapshot.json beside them is what the cluster says
    of brokers, topics, partitions, groups and settings: answers take it from there;
    end-offsets.csv is the same as a file for --end-offsets. Reads only: joins no group, commits
    nothing, creates no topic. Needs kafka-python 3.
    """
    # --help answers without the client library and numpy.
    from analytics.snapshot.client_properties import client_settings  # noqa: PLC0415
    from analytics.snapshot.cluster_connection import (  # noqa: PLC0415
        ClusterConnection,
        check_client_library,
    )
    from analytics.snapshot.log_folder import check_out  # noqa: PLC0415
    from analytics.snapshot.taking import Limits, take_snapshot  # noqa: PLC0415
    from jobs.cli.settings_files import read_client_properties  # noqa: PLC0415
    from reports.snapshot import snapshot_text, unread_text  # noqa: PLC0415

    check_client_library()
    properties = read_client_properties(command_config)
    settings = client_settings(properties, command_config or "--command-config")
    if settings.ignored:
        console.say(f"{command_config}: not used here: {', '.join(settings.ignored)}")
    check_out(out)
    with ClusterConnection(bootstrap_server, settings, timeout) as cluster:
        limits = Limits(bytes_a_second=most["max_rate"], most_bytes=most["max_bytes"])
        taken = take_snapshot(cluster, out, lambda: datetime.now(UTC), console.say, limits)
    if output_format == "json":
        print_text(msgspec.json.format(msgspec.json.encode(taken), indent=1).decode())
    else:
        print_text(snapshot_text(taken, str(out)))
    if taken.unread:
        console.error(unread_text(taken))
        return CANNOT_TELL
    return DONE
