"""What a cluster makes of a dump is what one machine makes of it, whoever dies meanwhile.

Executors, their Python and the driver are killed while tasks run, and tasks run twice.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.cluster.conftest import Cluster
from tests.cluster.workspace_rows import Rows, tables_in

DUMP = Path(__file__).parents[2] / "examples" / "kafka-4.3.1-failover"
COMMAND = [sys.executable, "-m", "tests.cluster.as_for_large"]
SPECULATION = {
    "spark.speculation": "true",
    "spark.speculation.interval": "10ms",
    "spark.speculation.multiplier": "1.01",
    "spark.speculation.quantile": "0.1",
    "spark.speculation.minTaskRuntime": "0ms",
}
pytestmark = pytest.mark.long


@contextmanager
def started(cluster: Cluster, *arguments: str | Path) -> Iterator[subprocess.Popen[str]]:
    with subprocess.Popen(
        [*COMMAND, *map(str, arguments)],
        cwd=Path(__file__).parents[2],
        env=cluster.environment,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    ) as process:
        try:
            yield process
        finally:
            if process.poll() is None:
                os.killpg(process.pid, signal.SIGKILL)


def ended(process: subprocess.Popen[str]) -> tuple[int, str]:
    _, stderr = process.communicate(timeout=300)
    return process.returncode, stderr


def executors(cluster: Cluster) -> list[int]:
    """The JVMs of executors that the cluster runs now."""
    return list(_processes(cluster, "CoarseGrainedExecutorBackend"))


def pythons(cluster: Cluster) -> list[int]:
    """The processes of Python in which its tasks run now."""
    return list(_processes(cluster, "pyspark.daemon"))


def _processes(cluster: Cluster, word: str) -> Iterator[int]:
    """Yield those with a word in their command line that run in a folder of the cluster."""
    for entry in Path("/proc").glob("[0-9]*"):
        try:
            words = (entry / "cmdline").read_bytes().decode(errors="replace")
            folder = (entry / "cwd").readlink()
        except OSError:
            continue
        if word in words and folder.is_relative_to(cluster.blind_work.parent):
            yield int(entry.name)


@contextmanager
def killing(victims: Callable[[], Sequence[int]], most: int) -> Iterator[list[int]]:
    """Kill the first of some processes as soon as there is one, so many times."""
    killed: list[int] = []
    is_over = threading.Event()

    def kill() -> None:
        while not is_over.is_set() and len(killed) < most:
            there = [each for each in victims() if each not in killed]
            if there:
                # It is killed with its task in flight, not while it starts.
                time.sleep(0.3)
                try:
                    os.kill(there[0], signal.SIGKILL)
                except ProcessLookupError:
                    continue
                killed.append(there[0])
            time.sleep(0.05)

    thread = threading.Thread(target=kill)
    thread.start()
    try:
        yield killed
    finally:
        is_over.set()
        thread.join()


@pytest.fixture(scope="module")
def here(cluster: Cluster) -> Rows:
    """What one machine makes of the dump, with tasks all the same."""
    out = cluster.shared / "here"
    with started(cluster, "audit", DUMP, "--out", out, "--master", "local[2]") as process:
        code, stderr = ended(process)
    assert code == 1, stderr
    return tables_in(out)


def audited(cluster: Cluster, out: Path, *settings: str) -> Rows:
    """What the cluster makes of it."""
    with started(cluster, "audit", DUMP, "--out", out, *cluster.settings, *settings) as process:
        code, stderr = ended(process)
    assert code == 1, stderr
    return tables_in(out)


def assert_equal(found: Rows, expected: Rows) -> None:
    assert list(found) == list(expected)
    assert [name for name in found if found[name] != expected[name]] == []


def test_an_audit_on_two_workers_is_that_of_one_machine(cluster: Cluster, here: Rows) -> None:
    out = cluster.shared / "two"
    assert_equal(audited(cluster, out), here)
    lines = (out / "findings.jsonl").read_text().splitlines()
    one = (cluster.shared / "here" / "findings.jsonl").read_text().splitlines()
    assert lines == one
    assert len(lines) > 10


def test_attempts_that_run_twice_change_nothing(cluster: Cluster, here: Rows) -> None:
    settings = [f"--conf={name}={value}" for name, value in SPECULATION.items()]
    assert_equal(audited(cluster, cluster.shared / "twice", *settings), here)


@pytest.mark.parametrize(("victims", "most"), [(executors, 3), (pythons, 1)])
def test_what_is_killed_with_a_task_in_flight_is_made_good(
    victims: Callable[[Cluster], Sequence[int]], most: int, cluster: Cluster, here: Rows
) -> None:
    out = cluster.shared / f"killed-{victims.__name__}"
    with killing(lambda: victims(cluster), most) as killed:
        found = audited(cluster, out)
    assert killed, "nobody was there to be killed"
    assert_equal(found, here)


def test_of_a_driver_that_is_killed_nothing_looks_finished(cluster: Cluster, here: Rows) -> None:
    out = cluster.shared / "killed-driver"
    with started(cluster, "audit", DUMP, "--out", out, *cluster.settings) as process:
        end = time.monotonic() + 120
        while not pythons(cluster) and time.monotonic() < end:
            time.sleep(0.05)
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()
    assert not (out / "summary.json").exists()
    assert not (out / "manifest.json").exists()
    assert_equal(audited(cluster, out), here)
    assert not [
        each.name for each in out.iterdir() if each.name.startswith((".staging", ".answers"))
    ]
