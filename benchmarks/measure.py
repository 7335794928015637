"""Contestants measured side by side: each round runs every one of them once, in turn.

A machine that others use slows all contestants of a round alike, so a ratio is taken within each
round, and the median of the rounds is what counts. Processor time, of all processes involved,
stands next to wall time: it suffers less from neighbours.
"""

from __future__ import annotations

import gc
import os
import statistics
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

_TICKS = os.sysconf("SC_CLK_TCK")


@dataclass(frozen=True)
class Contestant:
    """One way to do the work.

    Attributes:
        name: As it is printed.
        run: Does the work once.
        cpu: Reads a clock of processor time, in seconds; this process's own by default.
        clean: What is done after each run, outside the time.
    """

    name: str
    run: Callable[[], object]
    cpu: Callable[[], float] = time.process_time
    clean: Callable[[], object] = lambda: None


@dataclass
class Times:
    """Seconds of each round."""

    wall: list[float] = field(default_factory=list)
    cpu: list[float] = field(default_factory=list)


def sunk(frame: Callable[[], DataFrame]) -> Callable[[], None]:
    """Return work that computes a DataFrame and writes it nowhere."""
    return lambda: frame().write.format("noop").mode("overwrite").save()


def interleaved(contestants: Sequence[Contestant], rounds: int) -> dict[str, Times]:
    """Run everybody once a round; returns times by name."""
    times = {each.name: Times() for each in contestants}
    for _ in range(rounds):
        for each in contestants:
            gc.collect()
            cpu, wall = each.cpu(), time.perf_counter()
            each.run()
            times[each.name].wall.append(time.perf_counter() - wall)
            times[each.name].cpu.append(each.cpu() - cpu)
            each.clean()
    return times


def ratio(one: Sequence[float], other: Sequence[float]) -> float:
    """Return the median over the rounds of one's time divided by the other's."""
    return statistics.median(a / b for a, b in zip(one, other, strict=True))


def tree_cpu(root: int | None = None) -> float:
    """Return processor seconds of a process and all below it, those that ended included."""
    ticks = 0
    for process in process_tree(os.getpid() if root is None else root):
        numbers = _stat(process)
        # utime, stime, and the same of children that ended and were waited for.
        ticks += sum(map(int, numbers[11:15])) if numbers else 0
    return ticks / _TICKS


def process_tree(root: int) -> list[int]:
    """Return a process and all below it."""
    children: dict[int, list[int]] = {}
    for folder in Path("/proc").iterdir():
        if folder.name.isdigit() and (numbers := _stat(int(folder.name))):
            children.setdefault(int(numbers[1]), []).append(int(folder.name))
    found = [root]
    for process in found:
        found += children.get(process, [])
    return found


def _stat(process: int) -> list[str]:
    """Return what follows the name in /proc/PID/stat; nothing where the process is gone."""
    try:
        text = Path(f"/proc/{process}/stat").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return []
    return text.rpartition(")")[2].split()
