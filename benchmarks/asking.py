"""Questions to a workspace of a million committed offsets, as whole commands.

The workspace is what `groupscope replay` makes of generated segments; the questions are asked of
finished tables, and start no Spark.
"""

from __future__ import annotations

import statistics

from analytics.questions.describe.description import NEEDS
from analytics.questions.lag.question import LAG
from analytics.tables.stored_tables import StoredTables
from analytics.workspace import Workspace
from benchmarks.command import GROUPSCOPE, run_command
from benchmarks.data import Data, size_of
from benchmarks.generate import Options, write_dump
from benchmarks.measure import Contestant, interleaved, tree_cpu
from benchmarks.report import Figure, Report
from jobs.cli.console import Console
from jobs.workspaces.replaying import replay_into

_PARTITIONS = 4
_ANSWERED = (0, 3)
"""Also where something cannot be told: generated groups lie in any partition."""


def run(data: Data) -> list[Report]:
    """Measure."""
    out = str(data.folder / "asked")
    dump = data.folder / "asked-dump"
    # Nearly every generated commit is of an offset of its own.
    write_dump(dump, Options(size=data.segment_bytes // 3), _PARTITIONS)
    needs = tuple({*NEEDS, *LAG.needs})
    replay_into(out, Console(quiet=True), inputs=[str(dump)], needs=needs, master="local[2]")
    stored = StoredTables(Workspace(out))
    groups = stored.read("committed_offsets", ["group_id"])["group_id"]
    some = groups[len(groups) // 2].as_py()
    questions = {
        "list": ["list", out],
        "describe of one group": ["describe", out, "--group", some],
        "describe --state of all groups": ["describe", out, "--state"],
        "describe --members of one group": ["describe", out, "--members", "--group", some],
        "lag --by group": ["lag", out, "--by", "group", "--format", "json"],
        "lag of one group": ["lag", out, "--group", some],
    }
    times = interleaved(
        [_asked(name, arguments) for name, arguments in questions.items()], data.rounds
    )
    report = Report(
        f"Questions to {len(groups):,} offsets, of {size_of(dump) / 1e6:,.0f} MB of segments"
    )
    report.figures = [
        Figure(name, statistics.median(each.wall), "s", at_most=3) for name, each in times.items()
    ]
    report.add_times(times)
    return [report]


def _asked(name: str, arguments: list[str]) -> Contestant:
    return Contestant(
        name, lambda: run_command([str(GROUPSCOPE), *arguments], codes=_ANSWERED), tree_cpu
    )
