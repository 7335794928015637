"""The whole at scale: `replay` and questions to its workspace beside `decode`, and their memory.

A record in eleven lists the members of a group. Each command runs on a dump, and on one of four
times the records: how time grows, and the highest memory of the driver and of Spark's workers.

    python -m benchmarks at_scale --segment 430MB --rounds 1     10 million commits, 1 million group
                                                                 records, and a quarter of that
"""

from __future__ import annotations

import shutil
from dataclasses import dataclass, field

from benchmarks.command import GROUPSCOPE, Run, run_command
from benchmarks.data import Data, size_of
from benchmarks.generate import Options, write_dump
from benchmarks.measure import ratio
from benchmarks.report import Figure, Report

PARTITIONS = 4
GROUP_SHARE = 1 / 11
_TIMES = 4
_QUESTIONS = {
    "expiration": ("expiration",),
    "rebalances": ("rebalances",),
    "balance": ("balance", "--history"),
    "lag": ("lag",),
    "usage": ("usage",),
    "lag as JSON": ("lag", "--format", "json"),
    "expiration as JSON": ("expiration", "--format", "json"),
}
"""What each is asked of the replayed workspace with; JSON has every row."""
MOST_TIMES = {
    "replay": 4,
    **{name: 2 for name in _QUESTIONS if not name.endswith("JSON")},
    "audit": 8,
}
_MOST_GROWTH = 4.4
_MOST_DRIVER_MB = 1024
_MOST_WORKER_MB = 1536
_ENDED = (0, 1, 3)
"""Findings, and what cannot be told of generated groups, are no failure."""


@dataclass
class Measured:
    """Runs of each command on one dump."""

    size: int
    runs: dict[str, list[Run]] = field(default_factory=dict)

    def walls(self, name: str) -> list[float]:
        """Return how long a command took, run by run."""
        return [each.wall for each in self.runs[name]]

    def lines(self) -> list[str]:
        """Return a line for each command: the size of the dump, and how long it took."""
        return [
            f"    {name:<20}{self.size / 1e6:8,.0f} MB  wall "
            f"{', '.join(f'{each.wall:.1f}' for each in runs)} s"
            for name, runs in self.runs.items()
        ]


def run(data: Data) -> list[Report]:
    """Measure."""
    small = measure(data, data.segment_bytes // _TIMES, "quarter")
    large = measure(data, data.segment_bytes, "whole")
    report = Report(f"Commands on {large.size / 1e6:,.0f} MB and a quarter of it, whole processes")
    for name, most in MOST_TIMES.items():
        times = ratio(large.walls(name), large.walls("decode"))
        report.figures.append(Figure(f"{name}, of the time of decode", times, at_most=most))
    for name in MOST_TIMES:
        growth = ratio(large.walls(name), small.walls(name))
        what = f"{name}, for four times the records"
        report.figures.append(Figure(what, growth, at_most=_MOST_GROWTH))
    for name, runs in large.runs.items():
        add_memory(report, name, runs)
    for measured in (small, large):
        report.details += measured.lines()
    return [report]


def add_memory(report: Report, name: str, runs: list[Run]) -> None:
    """Add the highest memory of the driver, and of a worker where Spark had some."""
    driver = max(each.driver_peak for each in runs)
    what = f"{name}, highest memory of the driver"
    report.figures.append(Figure(what, driver, "MB", at_most=_MOST_DRIVER_MB))
    workers = [peak for each in runs for peak in each.worker_peaks.values()]
    if workers:
        what = f"{name}, highest memory of a worker"
        report.figures.append(Figure(what, max(workers), "MB", at_most=_MOST_WORKER_MB))


def measure(
    data: Data, segment_bytes: int, folder: str, *, group_share: float = GROUP_SHARE
) -> Measured:
    """Run each command on a dump of four segments in a folder, which is removed then."""
    place = data.folder / folder
    dump = place / "dump"
    write_dump(dump, Options(size=segment_bytes, group_share=group_share), PARTITIONS)
    measured = Measured(size_of(dump))
    for _ in range(data.rounds):
        made = ("decode", "replay", "audit")
        for name in made:
            shutil.rmtree(place / name, ignore_errors=True)
            _run(measured, name, name, str(dump), "--out", str(place / name))
        for name, (question, *options) in _QUESTIONS.items():
            _run(measured, name, question, str(place / "replay"), *options)
    shutil.rmtree(place)
    return measured


def _run(measured: Measured, name: str, *arguments: str) -> None:
    measured.runs.setdefault(name, []).append(run_groupscope(*arguments))


def run_groupscope(*arguments: str) -> Run:
    """Run a command to its end, and watch the memory of all of its processes.

    Raises:
        subprocess.CalledProcessError: It failed.
    """
    command = [str(GROUPSCOPE), *arguments]
    return run_command(command, watch_workers=True, codes=_ENDED)
