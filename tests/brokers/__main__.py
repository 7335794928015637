"""Hold decoding and replay against a real broker of a release, after random acts on it.

Run as ``python -m tests.brokers --release 4.4.0 --seed 7`` (or ``make test-brokers``): Maven
fetches the broker, clients act at random on it, and what it knew at the end, what fresh brokers of
the release know that have loaded its log up to somewhere, what they refuse to load where records
are missing, what its cleaner leaves, and what Kafka's tool prints of every record are compared with
ours. Exit code 1 where anything differs.
"""

from __future__ import annotations

import contextlib
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import click

from tests.brokers.cases import LoadedCases
from tests.brokers.cleaning import Cleaned
from tests.brokers.performance import Performance
from tests.brokers.programs import fetch_broker, fetch_programs
from tests.brokers.refusals import Thinned
from tests.brokers.releases import OLDEST, Release, broker_settings
from tests.brokers.share_chains import Chained
from tests.brokers.taken_dump import TakenDump
from tests.support.kafka_jars import JarsUnavailableError

_CHECKS = ("tests.support.dump_log_check", "tests.support.cut_check")


@click.command(help=(__doc__ or "").split("\n", maxsplit=1)[0])
@click.option("--release", "number", default="4.4.0", show_default=True, help="3.5 or newer.")
@click.option("--seed", default=1, show_default=True, help="Chooses settings, acts and cuts.")
@click.option("--seconds", default=90, show_default=True, help="How long the clients act.")
@click.option("--cuts", default=6, show_default=True, help="How many cuts are loaded.")
@click.option("--thinned", default=3, show_default=True, help="How many thinned copies are loaded.")
@click.option(
    "--keep",
    type=click.Path(path_type=Path),
    help="A new folder for the dump; thrown away without.",
)
@click.option("--cases", "is_cases", is_flag=True, help="Load the cases of reports instead.")
def main(
    number: str,
    seed: int,
    seconds: int,
    cuts: int,
    thinned: int,
    keep: Path | None,
    *,
    is_cases: bool,
) -> None:
    """Perform, compare, and end with 1 where anything differs."""
    release = Release(number)
    if is_cases:
        sys.exit(_cases_differ(release))
    if release.line < OLDEST:
        raise click.UsageError(f"brokers of {number} need ZooKeeper: 3.5 or newer, please")
    with _folder() as folder, _dump(folder, keep) as dump:
        click.echo(f"Kafka {number}, seed {seed}, {seconds} s of acts")
        try:
            programs = fetch_programs(release, folder)
        except JarsUnavailableError as reason:
            click.echo(f"skipped: {reason}")
            return
        Performance(release, seed, seconds, cuts, programs, folder, click.echo).play(dump)
        failed = [check for check in _CHECKS if _fails(check, dump.root)]
        copies = Thinned(release, seed, thinned, programs, folder, click.echo)
        if release.has_consumer_groups and copies.differ(dump.log_dir):
            failed.append("refusals")
        settings = broker_settings(release, seed)
        if Chained(release, seed, programs, folder, click.echo).differ():
            failed.append("chains")
        if Cleaned(settings, programs, folder, click.echo).differ(dump.log_dir):
            failed.append("cleaning")
    sys.exit(1 if failed else 0)


def _cases_differ(release: Release) -> bool:
    with _folder() as folder:
        try:
            programs = fetch_broker(release, folder)
        except JarsUnavailableError as reason:
            click.echo(f"skipped: {reason}")
            return False
        return LoadedCases(release, programs, folder, click.echo).differ()


def _fails(check: str, dump: Path) -> bool:
    return subprocess.run([sys.executable, "-m", check, str(dump)], check=False).returncode != 0


@contextlib.contextmanager
def _folder() -> Iterator[Path]:
    with tempfile.TemporaryDirectory(prefix="brokers-", ignore_cleanup_errors=True) as folder:
        yield Path(folder)


@contextlib.contextmanager
def _dump(folder: Path, keep: Path | None) -> Iterator[TakenDump]:
    root = keep or folder / "dump"
    if root.exists() and any(root.iterdir()):
        raise click.UsageError(f"{root} is not empty")
    root.mkdir(parents=True, exist_ok=True)
    yield TakenDump(root)


if __name__ == "__main__":
    main()
