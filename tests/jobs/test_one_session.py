"""A command starts Spark once at most, whatever it does."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.conftest import Groupscope

SHARED = """
import os
import pyarrow as pa
from analytics.spark_tasks import OWN
from jobs.cli.console import Console
from jobs.spark.session import one_session, spark_session

def used(small=True):
    with spark_session(Console(quiet=True), small=small) as spark:
        return spark.sparkContext.applicationId

def sockets(spark):
    return spark.conf.get("spark.python.unix.domain.socket.enabled", "false")

def is_own(batches):
    for batch in batches:
        yield pa.RecordBatch.from_pydict({"own": [OWN in os.environ]})

with one_session():
    with spark_session(Console(quiet=True), small=True) as spark:
        rows = spark.range(1).mapInArrow(is_own, "own boolean").collect()
        print("workers of its own", rows[0].own, sockets(spark))
    first = used()
    with one_session():
        print("shared", used() == first)
    print("kept", used() == first)
    print("another size", used(small=False) == first)
    with spark_session(Console(quiet=True), small=True) as spark:
        rows = spark.range(1).mapInArrow(is_own, "own boolean").collect()
        print("workers of the next one", rows[0].own, sockets(spark))
    try:
        with spark_session(Console(quiet=True), small=True) as spark:
            raise KeyError
    except KeyError:
        print("stopped by an error", spark.sparkContext._jsc is None)
print("stopped", spark.getActiveSession() is None)
"""


def test_work_within_shares_a_session_that_is_set_up_alike() -> None:
    """And each session has sockets in a folder of the run, of which nothing stays."""
    folder = Path("/tmp") / f"groupscope-test-{os.getpid()}"
    folder.mkdir()
    told = subprocess.run(
        [sys.executable, "-c", SHARED],
        env={**os.environ, "TMPDIR": str(folder)},
        capture_output=True,
        text=True,
        check=False,
    )
    said = dict(line.rsplit(" ", 1) for line in told.stdout.splitlines())
    assert said == {
        "workers of its own True": "true",
        "workers of the next one True": "true",
        "shared": "True",
        "kept": "True",
        "another size": "False",
        "stopped by an error": "True",
        "stopped": "True",
    }, told.stderr
    assert not list(folder.iterdir())
    folder.rmdir()


@pytest.mark.installed
@pytest.mark.parametrize(
    "command",
    [
        pytest.param(("describe",), marks=pytest.mark.long),
        ("diff", "--from", "-1s"),
    ],
    ids=["describe", "diff"],
)
@pytest.mark.parametrize(("master", "starts"), [((), 0), (("--master", "local[2]"), 1)])
def test_a_command_starts_spark_once_and_only_where_it_is_asked_to_for_a_small_dump(
    installed: Groupscope,
    repository: Path,
    command: tuple[str, ...],
    master: tuple[str, ...],
    starts: int,
) -> None:
    name, *options = command
    dump = repository / "tests" / "cases" / "reports" / "consumer-new-partition" / "dump"
    ran = installed(name, dump, "--verbose", *options, *master)
    assert ran.returncode in {0, 3}, ran.stderr
    assert ran.stderr.count("starting Spark...") == starts
