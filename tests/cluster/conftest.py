"""A Standalone cluster on loopback: a Master and two Workers, one of which lacks some folders."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

import pyspark
import pytest

SPARK_HOME = Path(pyspark.__file__).parent
_MASTER = re.compile(r"Starting Spark master at (spark://\S+)")
_REGISTERED = "Successfully registered with master"
_PATIENCE = 30.0


@dataclass(frozen=True)
class Cluster:
    """A Standalone cluster whose Workers have one core each.

    Attributes:
        master: Its URL.
        shared: A folder that all see.
        blind: Folders that one Worker has nothing in, as if they were on another machine's disk.
        blind_work: What that Worker keeps of its executors.
    """

    master: str
    shared: Path
    blind: Path
    blind_work: Path

    @property
    def environment(self) -> dict[str, str]:
        """The environment of a driver beside it."""
        return {**os.environ, "PYSPARK_PYTHON": sys.executable, "SPARK_LOCAL_IP": "127.0.0.1"}

    @property
    def settings(self) -> list[str]:
        """The options of a command that is to run on it."""
        settings = ("spark.executor.memory=512m", "spark.ui.enabled=false")
        return ["--master", self.master, *(f"--conf={each}" for each in settings)]

    def words_of_the_blind(self) -> str:
        """What executors of the Worker that lacks folders wrote."""
        logs = sorted(self.blind_work.glob("app-*/*/stderr"))
        return "\n".join(each.read_text(errors="replace") for each in logs)


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    """Start the cluster, and stop it at the end."""
    if subprocess.run(["unshare", "-m", "true"], capture_output=True, check=False).returncode:
        pytest.skip("a Worker with other disks takes the right to mount (unshare -m)")
    folder = tmp_path_factory.mktemp("cluster")
    empty, blind, shared = folder / "empty", folder / "blind", folder / "shared"
    for each in (empty, blind, shared):
        each.mkdir()
    with ExitStack() as stack:
        words = folder / "master.log"
        stack.enter_context(
            _started(_java("master.Master", "--port", "0", "--webui-port", "0"), words)
        )
        master = _awaited(words, _MASTER)[1]
        own = f"mount --bind {empty} {blind} && "
        for name, before in (("sighted", ""), ("blind", own)):
            work = folder / f"work-{name}"
            arguments = ["-c", "1", "-m", "1g", "--webui-port", "0", "-d", str(work), master]
            command = _java("worker.Worker", *arguments)
            if before:
                command = ["unshare", "-m", "sh", "-c", f'{before}exec "$@"', "sh", *command]
            words = folder / f"{name}.log"
            stack.enter_context(_started(command, words))
            _awaited(words, re.compile(_REGISTERED))
        yield Cluster(master, shared, blind, folder / "work-blind")


def _java(name: str, *arguments: str) -> list[str]:
    spark_class = str(SPARK_HOME / "bin" / "spark-class")
    return [spark_class, f"org.apache.spark.deploy.{name}", "--host", "127.0.0.1", *arguments]


@contextmanager
def _started(command: list[str], words: Path) -> Iterator[None]:
    """Run a program in a group of its own, with its words in a file; end the whole group."""
    environment = {
        **{
            key: value for key, value in os.environ.items() if not key.startswith("PYSPARK_GATEWAY")
        },
        "SPARK_HOME": str(SPARK_HOME),
        "SPARK_LOCAL_IP": "127.0.0.1",
        "SPARK_DAEMON_MEMORY": "256m",
    }
    with words.open("w") as output:
        process = subprocess.Popen(
            command,
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
    try:
        yield
    finally:
        for each in (signal.SIGTERM, signal.SIGKILL):
            try:
                os.killpg(process.pid, each)
                process.wait(10)
            except (ProcessLookupError, subprocess.TimeoutExpired):
                continue


def _awaited(words: Path, sought: re.Pattern[str]) -> re.Match[str]:
    """Return where a program's words show that it has come so far."""
    end = time.monotonic() + _PATIENCE
    while time.monotonic() < end:
        found = sought.search(words.read_text(errors="replace"))
        if found is not None:
            return found
        time.sleep(0.1)
    raise AssertionError(f"{sought.pattern} is not in:\n{words.read_text(errors='replace')}")
