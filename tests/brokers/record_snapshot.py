"""Record what a running broker answers to `snapshot`, as `tests/data/snapshots` has it.

Run as ``python -m tests.brokers.record_snapshot HOST:PORT FILE``: takes two snapshots, one in
answers so small that batches are cut, and one that goes on from the first; and asks for each group
by itself, as a second look may.
"""

from __future__ import annotations

import tempfile
from datetime import UTC, datetime
from pathlib import Path

import click

from analytics.snapshot.cluster_connection import ClientSettings, ClusterConnection
from analytics.snapshot.cluster_description import listed_groups
from analytics.snapshot.group_answers import answer_writer, asked_groups, write_group_answers
from analytics.snapshot.log_folder import earlier_snapshot
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
                take_snapshot(cluster, out, _now, click.echo, limits.reader(cluster))
        earlier = earlier_snapshot(Path(folder) / "0")
        with ClusterConnection(address, ClientSettings(), 10) as cluster:
            out = Path(folder) / "resumed"
            take_snapshot(cluster, out, _now, click.echo, earlier=earlier)
            listed, _ = listed_groups(cluster)
            with answer_writer(Path(folder) / "answers", _now, 2) as writer:
                for each in asked_groups(listed):
                    write_group_answers(cluster, [each], writer)


def _now() -> datetime:
    return datetime.now(UTC)


if __name__ == "__main__":
    main()
