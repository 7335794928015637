"""An audit of the bundled failover, and of a large generated dump, beside a decode of the same.

Whole processes, from the dump to the page, as a person waits for them.
"""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path

from benchmarks.command import GROUPSCOPE, run_command
from benchmarks.data import Data, size_of
from benchmarks.generate import Options, write_dump
from benchmarks.measure import Contestant, interleaved, ratio, tree_cpu
from benchmarks.report import Figure, Report

BUNDLED = Path(__file__).resolve().parents[1] / "examples" / "kafka-4.3.1-failover"
_PARTITIONS = 4
_ENDED = (0, 1, 3)
"""Findings, and what cannot be told of generated groups, are no failure."""


def run(data: Data) -> list[Report]:
    """Measure."""
    generated = data.folder / "audited-dump"
    write_dump(generated, Options(size=data.segment_bytes // 10), _PARTITIONS)
    return [_report(BUNDLED, data, 2), _report(generated, data, 8)]


def _report(dump: Path, data: Data, at_most: float) -> Report:
    times = interleaved(list(_contestants(dump, data.folder / "audited")), data.rounds)
    report = Report(f"An audit of {size_of(dump) / 1e6:,.1f} MB, whole processes")
    report.figures = [
        Figure(
            "audit, of the time of decode",
            ratio(times["audit"].wall, times["decode"].wall),
            at_most=at_most,
        )
    ]
    report.add_times(times)
    return report


def _contestants(dump: Path, out: Path) -> Iterator[Contestant]:
    for name in ("decode", "audit"):

        def whole(command: str = name) -> None:
            shutil.rmtree(out, ignore_errors=True)
            run_command([str(GROUPSCOPE), command, str(dump), "--out", str(out)], codes=_ENDED)

        yield Contestant(name, whole, tree_cpu)
