"""An interrupted run ends with 130, in one line, and is never taken for a finished one."""

from __future__ import annotations

import signal
import subprocess
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import pytest

from tests.conftest import COMMAND


def of_session(leader: int) -> dict[int, str]:
    """Return the processes of a session, with what they were called by."""
    found = {}
    for place in Path("/proc").iterdir():
        with suppress(OSError, ValueError):
            state, _, _, session = (place / "stat").read_text().rpartition(")")[2].split()[:4]
            if int(session) == leader and state != "Z":
                found[int(place.name)] = (place / "cmdline").read_bytes().decode()
    return found


def waits_until(is_so: Callable[[], bool], seconds: float) -> bool:
    """Wait for something, not for ever; return whether it came."""
    until = time.monotonic() + seconds
    while not is_so() and time.monotonic() < until:
        time.sleep(0.02)
    return is_so()


@pytest.mark.installed
@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="processes are not listed here")
@pytest.mark.parametrize(
    "signum", [signal.SIGINT, pytest.param(signal.SIGTERM, marks=pytest.mark.long)]
)
def test_a_jvm_whose_start_is_interrupted_ends_with_the_run(
    signum: signal.Signals, failover_dump: Path, tmp_path: Path
) -> None:
    run = subprocess.Popen(
        [str(COMMAND), "decode", str(failover_dump), "--out", str(tmp_path / "out")],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    starts = "org.apache.spark.deploy.SparkSubmit"
    assert waits_until(lambda: any(starts in each for each in of_session(run.pid).values()), 240)
    run.send_signal(signum)
    _, said = run.communicate(timeout=240)
    assert run.returncode == 130
    assert said.strip() == "groupscope: interrupted; no unfinished result was left behind"
    # Helpers of the start end by themselves.
    assert waits_until(lambda: not of_session(run.pid), 60), of_session(run.pid)


def interrupted(signum: signal.Signals, *arguments: str | Path, out: Path) -> tuple[int, str]:
    """Start a run, wait until it has begun to write, and interrupt it."""
    run = subprocess.Popen(
        [str(COMMAND), *map(str, arguments), "--out", str(out)],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    until = time.monotonic() + 240
    while not any(out.glob(".staging-*")) and run.poll() is None and time.monotonic() < until:
        time.sleep(0.05)
    run.send_signal(signum)
    _, said = run.communicate(timeout=240)
    return run.returncode, said


@pytest.mark.installed
@pytest.mark.parametrize(
    "signum", [pytest.param(signal.SIGINT, marks=pytest.mark.long), signal.SIGTERM]
)
def test_a_run_that_is_interrupted_leaves_no_result(
    signum: signal.Signals, failover_dump: Path, tmp_path: Path
) -> None:
    out = tmp_path / "out"
    code, said = interrupted(signum, "decode", failover_dump, out=out)
    assert code == 130
    (line,) = [line for line in said.splitlines() if line]
    assert line == "groupscope: interrupted; no unfinished result was left behind"
    assert not (out / "manifest.json").exists()
    assert not any(out.glob(".staging-*"))
