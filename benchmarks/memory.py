"""Peak memory of each Python worker while the installed command decodes a dump, and four times it.

A worker holds a few chunks, whatever the size of the dump: both figures are to be alike. Only the
high-water mark of the workers counts; the JVM's is what it is allowed.

To compare two branches: `python -m benchmarks memory` on each.
"""

from __future__ import annotations

import shutil

from benchmarks.command import GROUPSCOPE, run_command
from benchmarks.data import Data, size_of
from benchmarks.report import Figure, Report

_TIMES = 4


def run(data: Data) -> list[Report]:
    """Measure."""
    report = Report("Highest resident memory of a Python worker, groupscope decode on local[2]")
    for times in (1, _TIMES):
        with data.multiplied(times) as dump:
            out = data.folder / "memory"
            command = [str(GROUPSCOPE), "decode", str(dump), "--out", str(out)]
            ran = run_command([*command, "--master", "local[2]"], watch_workers=True)
            what = f"{times}x the dump, {size_of(dump) / 1e6:,.0f} MB"
            report.figures.append(Figure(what, max(ran.worker_peaks.values()), "MB", at_most=700))
            peaks = ", ".join(f"{peak:,.0f}" for peak in sorted(ran.worker_peaks.values()))
            report.details.append(f"    {what}: daemon and workers {peaks} MB")
            shutil.rmtree(out)
    return [report]
