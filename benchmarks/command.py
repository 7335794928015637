"""The installed command as a process: its time, and the memory of the Python workers below it."""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Collection
from dataclasses import dataclass, field
from pathlib import Path

from benchmarks.measure import process_tree

GROUPSCOPE = Path(sys.executable).with_name("groupscope")
_SECONDS_BETWEEN_LOOKS = 0.05


@dataclass
class Run:
    """One run of a command.

    Attributes:
        wall: Seconds.
        worker_peaks: Highest resident megabytes, by process, of Spark's Python workers.
        driver_peak: Highest resident megabytes of the command's own process.
    """

    wall: float = 0
    driver_peak: float = 0
    worker_peaks: dict[int, float] = field(default_factory=dict)


def run_command(
    arguments: list[str], *, watch_workers: bool = False, codes: Collection[int] = (0,)
) -> Run:
    """Run a command to its end; what it prints goes nowhere.

    Args:
        arguments: The command.
        watch_workers: Whether the memory of the command, and of Spark's Python workers, is looked
            at meanwhile.
        codes: Exit codes that are no failure.

    Raises:
        subprocess.CalledProcessError: It failed; its last words are printed.
    """
    start = time.perf_counter()
    with subprocess.Popen(
        arguments, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE
    ) as process:
        run = Run()
        while watch_workers and process.poll() is None:
            _look(process.pid, run)
            time.sleep(_SECONDS_BETWEEN_LOOKS)
        _, words = process.communicate()
    run.wall = time.perf_counter() - start
    if process.returncode not in codes:
        print(words.decode(errors="replace")[-2000:], file=sys.stderr)
        raise subprocess.CalledProcessError(process.returncode, arguments)
    return run


def _look(root: int, run: Run) -> None:
    """Note the peaks of the command and of Spark's workers: processes that its daemon forked."""
    run.driver_peak = max(run.driver_peak, _peak(root))
    for process in process_tree(root)[1:]:
        try:
            command = Path(f"/proc/{process}/cmdline").read_bytes()
        except OSError:
            continue
        if b"pyspark.daemon" in command:
            run.worker_peaks[process] = max(run.worker_peaks.get(process, 0), _peak(process))


def _peak(process: int) -> float:
    """Return the highest resident megabytes of a process so far; 0 where it is gone."""
    try:
        status = Path(f"/proc/{process}/status").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return 0
    peak = next((line for line in status.splitlines() if line.startswith("VmHWM:")), None)
    return int(peak.split()[1]) / 1024 if peak else 0
