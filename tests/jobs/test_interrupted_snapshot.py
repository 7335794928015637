"""A snapshot that is interrupted leaves nothing; one that is killed leaves no dump."""

from __future__ import annotations

import signal
import subprocess
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.conftest import COMMAND
from tests.support.recorded_cluster import FETCH, RECORDING, Request, recorded_cluster

if TYPE_CHECKING:
    from tests.conftest import Groupscope

pytestmark = pytest.mark.installed
_SECONDS = 30


@pytest.fixture
def stuck() -> Iterator[str]:
    """A cluster that never answers the second fetch."""
    fetched = 0
    ended = threading.Event()

    def wait(request: Request, response: bytes) -> bytes | None:
        nonlocal fetched
        fetched += request.api == FETCH
        if request.api == FETCH and fetched > 1:
            ended.wait(_SECONDS)
            return None
        return response

    with recorded_cluster(RECORDING, wait) as address:
        yield address
        ended.set()


HERE, IN_TASKS = (), ("--master", "local[2]")


@pytest.fixture
def running(
    stuck: str, tmp_path: Path, request: pytest.FixtureRequest
) -> Iterator[subprocess.Popen[str]]:
    """A snapshot of it that has begun to read."""
    process = subprocess.Popen(
        [
            *(COMMAND, "snapshot", "--bootstrap-server", stuck, "--out", tmp_path / "dump"),
            *request.param,
        ],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        encoding="utf-8",
    )
    with process:
        until = time.monotonic() + _SECONDS
        while not [*tmp_path.glob(".dump.unfinished/**/__consumer_offsets-*/*.log")]:
            assert process.poll() is None, process.communicate()
            assert time.monotonic() < until
            time.sleep(0.05)
        yield process
        process.kill()


@pytest.mark.parametrize(
    ("running", "how"),
    [
        (HERE, signal.SIGINT),
        (HERE, signal.SIGTERM),
        (IN_TASKS, signal.SIGTERM),
        pytest.param(IN_TASKS, signal.SIGINT, marks=pytest.mark.long),
    ],
    indirect=["running"],
)
def test_what_is_interrupted_leaves_nothing(
    running: subprocess.Popen[str], tmp_path: Path, how: signal.Signals
) -> None:
    running.send_signal(how)
    printed, said = running.communicate(timeout=_SECONDS)
    assert (running.returncode, printed) == (130, "")
    assert said.strip() == "groupscope: interrupted; no unfinished result was left behind"
    assert [*tmp_path.iterdir()] == []


@pytest.mark.parametrize(
    "running", [HERE, pytest.param(IN_TASKS, marks=pytest.mark.long)], indirect=True
)
def test_what_a_killed_one_leaves_is_no_dump_and_goes_with_the_next(
    running: subprocess.Popen[str], groupscope: Groupscope, tmp_path: Path
) -> None:
    running.kill()
    running.wait(_SECONDS)
    (left,) = tmp_path.iterdir()
    assert groupscope("inspect", left).returncode == 3
    with recorded_cluster(RECORDING) as address:
        ran = groupscope("snapshot", "--bootstrap-server", address, "--out", tmp_path / "dump")
    assert ran.returncode == 0
    assert [*tmp_path.iterdir()] == [tmp_path / "dump"]
