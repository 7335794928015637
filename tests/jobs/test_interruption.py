"""An interrupted run ends with 130, in one line, and is never taken for a finished one."""

from __future__ import annotations

import signal
import subprocess
import time
from pathlib import Path

import pytest

from tests.conftest import COMMAND


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
@pytest.mark.parametrize("signum", [signal.SIGINT, signal.SIGTERM])
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
