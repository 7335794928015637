"""The JVM and Python talk over sockets in a folder of the run, and nothing of it stays."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

TWO_SESSIONS = """
from jobs.cli.console import Console
from jobs.spark.session import spark_session

def passed_on(batches):
    yield from batches

for _ in range(2):
    with spark_session(Console(quiet=True), small=True) as spark:
        found = spark.range(3).mapInArrow(passed_on, "id long").toArrow()
        enabled = spark.conf.get("spark.python.unix.domain.socket.enabled", "false")
        print(found.num_rows, enabled)
"""


@pytest.mark.parametrize(
    ("depth", "enabled"),
    # A short path is that of `test_one_session`, too.
    [pytest.param(*each, marks=pytest.mark.long) for each in ((1, "true"), (8, "false"))],
    ids=["short", "long"],
)
def test_every_session_of_a_run_uses_the_folder_unless_its_path_is_too_long(
    depth: int, enabled: str, tmp_path_factory: pytest.TempPathFactory
) -> None:
    folder = Path("/tmp") if depth == 1 else tmp_path_factory.mktemp("long")
    folder = folder.joinpath(*[f"groupscope-test-{os.getpid()}"] * depth)
    folder.mkdir(parents=True)
    told = subprocess.run(
        [sys.executable, "-c", TWO_SESSIONS],
        env={**os.environ, "TMPDIR": str(folder)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert told.stdout == f"3 {enabled}\n" * 2, told.stderr
    assert not list(folder.iterdir())
    folder.rmdir()
