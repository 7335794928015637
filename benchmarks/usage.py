"""What fills the internal topics, against Spark merely counting the decoded commits by group.

The tables are what `groupscope decode` makes of generated segments of ten million commits. What is
timed on our side is all that `usage` does with them: every key, live and dead, what a pass of the
cleaner would leave, who commits. What Spark counts ends in its noop sink; both are warm. Memory is
that of a process that does nothing else.
"""

from __future__ import annotations

import subprocess
import sys
from typing import TYPE_CHECKING

from analytics.evaluate.usage.log_settings import LogSettings
from analytics.workspace import Workspace
from benchmarks.measure import Contestant, interleaved, ratio, sunk, tree_cpu
from benchmarks.offsets_replay import commits_of, decoded_commits
from benchmarks.report import Figure, Report
from jobs.console import Console
from jobs.runs.usage_tables import usage_tables
from jobs.session import spark_session
from schemas.usage_rules import usage_rules

if TYPE_CHECKING:
    from benchmarks.data import Data

COMMITS = 10_000_000
COMMITS_IF_QUICK = 20_000
_WARM_UP = 2
_COUNT = "Spark counts the commits by group"
_USAGE = "usage"
_OURS = """
import resource, sys
from analytics.libraries_later import withhold_libraries
withhold_libraries()
from analytics.evaluate.usage.log_settings import LogSettings
from analytics.workspace import Workspace
from jobs.runs.usage_tables import usage_tables
from schemas.usage_rules import usage_rules
space = Workspace(sys.argv[1])
found = usage_tables(space, space.manifest(), LogSettings(usage_rules()))
assert found.even.holds, found.even
print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss)
"""


def run(data: Data) -> list[Report]:
    """Measure."""
    commits = COMMITS_IF_QUICK if data.rounds == 1 else COMMITS
    whole = decoded_commits(data, commits)
    with spark_session(Console(quiet=True), master="local[2]") as spark:
        table = whole.path("decoded/offset_commit")
        count = sunk(lambda: spark.read.parquet(table).groupBy("key.group").count())
        contestants = [
            Contestant(_USAGE, lambda: _tables(whole)),
            Contestant(_COUNT, count, tree_cpu),
        ]
        interleaved(contestants, min(_WARM_UP, data.rounds))
        taken = interleaved(contestants, data.rounds)
    report = Report(f"usage, and Spark on local[2], {commits_of(whole):,} commits")
    ours, theirs = taken[_USAGE], taken[_COUNT]
    report.figures = [
        Figure("of the time of counting by group", ratio(ours.wall, theirs.wall), at_most=3.0),
        Figure("the same in processor time", ratio(ours.cpu, theirs.cpu)),
        Figure(
            "highest resident memory", _peak_kb(whole) / 1000, "MB", note="about a million keys"
        ),
    ]
    report.add_times(taken)
    return [report]


def _tables(whole: Workspace) -> None:
    usage_tables(whole, whole.manifest(), LogSettings(usage_rules()))


def _peak_kb(whole: Workspace) -> int:
    """Evaluate in a process of its own; return its highest memory in kB."""
    done = subprocess.run(
        [sys.executable, "-c", _OURS, whole.location], check=True, capture_output=True, text=True
    )
    return int(done.stdout)
