"""Commands as a person waits for them: whole processes, beside `decode` of the same dump.

Of the bundled failover: questions to the raw dump, and to its workspace once that was replayed.
"""

from __future__ import annotations

import shutil
from collections.abc import Mapping, Sequence
from pathlib import Path

from benchmarks.command import GROUPSCOPE, run_command
from benchmarks.data import Data, size_of
from benchmarks.measure import Contestant, interleaved, ratio, tree_cpu
from benchmarks.report import Figure, Report
from benchmarks.whole_audit import BUNDLED

_ENDED = (0, 1, 3)
"""Findings, and what a dump cannot tell, are no failure."""
_GROUP = ("--group", "parcel-router")
_BEFORE_THE_ELECTION = ("--from", "2026-11-21T09:18:30Z")
_OF_THE_DUMP = {"describe": (_GROUP, 1.4, 1.0), "replay": ((), 1.8, None)}
_OF_THE_WORKSPACE = {
    "expiration": ((), 0.5, 0.1),
    "balance": ((), 0.5, 0.1),
    "rebalances": ((), 0.5, 0.1),
    "timeline": (_GROUP, 0.5, 0.1),
    "diff": (_BEFORE_THE_ELECTION, 0.5, 0.1),
}
"""By command: options, the most times that `decode` takes, and what is hoped for."""


def run(data: Data) -> list[Report]:
    """Measure."""
    workspace = _replayed(BUNDLED, data.folder / "bundled")
    asked = [
        *(
            _asking(name, BUNDLED, options, data.folder)
            for name, (options, _, _) in _OF_THE_DUMP.items()
        ),
        *(_asking(name, workspace, options) for name, (options, _, _) in _OF_THE_WORKSPACE.items()),
    ]
    wanted = {
        name: (most, aim) for name, (_, most, aim) in (_OF_THE_DUMP | _OF_THE_WORKSPACE).items()
    }
    return [_beside_decode(BUNDLED, asked, wanted, data)]


def _beside_decode(
    dump: Path,
    asked: Sequence[Contestant],
    wanted: Mapping[str, tuple[float, float | None]],
    data: Data,
) -> Report:
    """Time commands beside `decode`; by name the most times that it takes, and what is hoped."""
    times = interleaved([_asking("decode", dump, (), data.folder), *asked], data.rounds)
    report = Report(f"Commands on {size_of(dump) / 1e6:,.1f} MB, whole processes")
    report.figures = [
        Figure(
            f"{name}, of the time of decode",
            ratio(times[name].wall, times["decode"].wall),
            at_most=most,
            aim=aim,
        )
        for name, (most, aim) in wanted.items()
    ]
    report.add_times(times)
    return report


def _replayed(dump: Path, out: Path) -> Path:
    run_command([str(GROUPSCOPE), "replay", str(dump), "--out", str(out)], codes=_ENDED)
    return out


def _asking(
    name: str, given: Path, options: Sequence[str], folder: Path | None = None
) -> Contestant:
    """Return a command; with a folder, one whose work is kept there and begins anew each time."""
    kept = () if folder is None or name == "describe" else ("--out", str(folder / f"{name}-out"))

    def whole() -> None:
        for place in kept[1:]:
            shutil.rmtree(place, ignore_errors=True)
        run_command([str(GROUPSCOPE), name, str(given), *options, *kept], codes=_ENDED)

    return Contestant(name, whole, tree_cpu)
