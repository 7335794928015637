"""`groupscope inspect` against `cat` of the same files to nowhere.

The whole command is timed, its start included, on a dump in memory or in the page cache, which is
the hardest case: from a disk both wait for the same bytes. The dump repeats four generated segments
with other base offsets.

To compare two branches: `python -m benchmarks inspection` on each.
"""

from __future__ import annotations

from benchmarks.command import GROUPSCOPE, Run, run_command
from benchmarks.data import Data, segments_in, size_of
from benchmarks.measure import Contestant, interleaved, ratio, tree_cpu
from benchmarks.report import Figure, Report

_OURS, _CAT = "groupscope inspect", "cat"


def run(data: Data) -> list[Report]:
    """Measure."""
    with data.multiplied(data.large_times) as dump:
        files = [str(each) for each in segments_in(dump)]

        def inspect() -> Run:
            return run_command([str(GROUPSCOPE), "inspect", str(dump)])

        def cat() -> Run:
            return run_command(["cat", *files])

        cat()
        inspect()
        size = size_of(dump)
        times = interleaved(
            [Contestant(_OURS, inspect, tree_cpu), Contestant(_CAT, cat, tree_cpu)], data.rounds
        )
    report = Report(f"inspect, {len(files)} segments, {size / 1e6:,.0f} MB; ratio of wall time")
    report.figures = [
        Figure("of the time of cat", ratio(times[_OURS].wall, times[_CAT].wall), at_most=3)
    ]
    report.add_times(times, size=size)
    return [report]
