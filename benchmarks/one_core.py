"""What a second core is worth: `replay` and questions at scale on `local[1]`, of `local[2]`.

    python -m benchmarks one_core --segment 100MB    2.5 million commits

Whole processes, with the start of the command and of Spark, which no core makes shorter.
"""

from __future__ import annotations

import shutil

from benchmarks.at_scale import GROUP_SHARE, PARTITIONS, run_groupscope
from benchmarks.data import Data, size_of
from benchmarks.generate import Options, write_dump
from benchmarks.measure import ratio
from benchmarks.report import Figure, Report

_CORES = (1, 2)
_QUESTIONS = {
    "expiration": ("expiration",),
    "balance": ("balance", "--history"),
    "lag": ("lag",),
    "usage": ("usage",),
}
_LEAST = 1.7


def run(data: Data) -> list[Report]:
    """Measure, each command on one core and on two in turn."""
    dump, out = data.folder / "dump", data.folder / "replayed"
    write_dump(dump, Options(size=data.segment_bytes, group_share=GROUP_SHARE), PARTITIONS)
    walls: dict[tuple[str, int], list[float]] = {}
    for _ in range(data.rounds):
        for cores in _CORES:
            shutil.rmtree(out, ignore_errors=True)
            commands: dict[str, tuple[str, ...]] = {
                "replay": ("replay", str(dump), "--out", str(out)),
                **{
                    name: (question, str(out), *options)
                    for name, (question, *options) in _QUESTIONS.items()
                },
            }
            for name, arguments in commands.items():
                ran = run_groupscope(*arguments, "--master", f"local[{cores}]")
                walls.setdefault((name, cores), []).append(ran.wall)
    report = Report(f"One core against two, {size_of(dump) / 1e6:,.0f} MB, whole processes")
    for name in ("replay", *_QUESTIONS):
        times = ratio(walls[name, 1], walls[name, 2])
        report.figures.append(Figure(f"{name} on local[1], of local[2]", times, at_least=_LEAST))
    return [report]
