"""Record what a running broker answers to `snapshot`, as `tests/data/snapshots` has it.

Run as ``python -m tests.brokers.record_snapshot HOST:PORT FILE``: takes two snapshots, one in
answers so small that batches are cut.
"""

from __future__ import annotations

import tempfile
from datetime import UTC, datetime
from pathlib import Path

import click

from analytics.snapshot.client_properties import ClientSettings
from analytics.snapshot.cluster_connection import ClusterConnection
from analytics.snapshot.taking import Limits, take_snapshot
from tests.support.recorded_cluster import recorder

SMALL_BYTES = 2048
"""Of an answer, in which many batches are cut."""


@click.command(help=(__doc__ or "").split("\n", maxsplit=1)[0])
@click.argument("broker")
@click.argument("file", type=click.Path(path_type=Path))
def main(broker: str, file: Path) -> None:
    """Record."""
    with recorder(broker, file) as address, tempfile.TemporaryDirectory() as folder:
        for number, limits in enumerate((Limits(), Limits(fetch_bytes=SMALL_BYTES))):
            with ClusterConnection(address, ClientSettings(), 10) as cluster:
                out = Path(folder) / str(number)
                take_snapshot(cluster, out, lambda: datetime.now(UTC), click.echo, limits)


if __name__ == "__main__":
    main()
