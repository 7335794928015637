"""Commands on the largest dump: many commits, and one record in a hundred of groups and members.

python -m benchmarks many_commits --large 4800MB    40 million commits
"""

from __future__ import annotations

from dataclasses import replace

from benchmarks.at_scale import MOST_TIMES, PARTITIONS, add_memory, measure
from benchmarks.data import Data
from benchmarks.measure import ratio
from benchmarks.report import Figure, Report

_GROUP_SHARE = 1 / 100


def run(data: Data) -> list[Report]:
    """Measure, once whatever the rounds: a run takes minutes."""
    segment_bytes = data.large_bytes // PARTITIONS
    measured = measure(replace(data, rounds=1), segment_bytes, "commits", group_share=_GROUP_SHARE)
    report = Report(f"Commands on {measured.size / 1e6:,.0f} MB of commits, whole processes")
    for name in MOST_TIMES:
        times = ratio(measured.walls(name), measured.walls("decode"))
        report.figures.append(Figure(f"{name}, of the time of decode", times))
    for name, runs in measured.runs.items():
        add_memory(report, name, runs)
    report.details += measured.lines()
    return [report]
