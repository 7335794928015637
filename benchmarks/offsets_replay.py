"""Committed offsets replayed in buckets, against merely reading the same columns of the tables.

The tables are what `groupscope decode` makes of generated segments: of ten million commits of about
a million offsets, and of a quarter of them in a quarter of the partitions.
"""

from __future__ import annotations

import shutil
import statistics
from functools import partial
from typing import TYPE_CHECKING

import polars as pl

from analytics.replay.log.rules import NEWEST, replay_rules
from analytics.replay.offsets.offset_state import committed_offsets
from analytics.tables.buckets import buckets
from analytics.tables.record_reader import RecordReader
from analytics.workspace import Workspace
from benchmarks.generate import Options, write_dump
from benchmarks.measure import Contestant, interleaved, ratio
from benchmarks.report import Figure, Report
from jobs.cli.console import Console
from jobs.workspaces.decoding import decode_into
from schemas import CONSUMER_OFFSETS

if TYPE_CHECKING:
    from collections.abc import Iterator

    from benchmarks.data import Data

COMMITS = 10_000_000
COMMITS_IF_QUICK = 20_000
_GROWTH = 4
_BYTES = 124  # of segments, a commit
_PARTITIONS = 16
_GROUPS = 40  # in each of them, with some 1,500 offsets
_WARM_UP = 2
_READ = "reading the same columns"
_TABLES = ("offset_commit", "control_markers")


def run(data: Data) -> list[Report]:
    """Measure."""
    quarter, whole = (_decoded(data, part) for part in (_GROWTH, 1))
    small, large = (
        Contestant(f"replay of {_commits(each):,} commits", partial(_replay, each))
        for each in (quarter, whole)
    )
    read = Contestant(_READ, lambda: sum(1 for _ in _frames(whole)))
    contestants = [small, large, read]
    interleaved(contestants, min(_WARM_UP, data.rounds))
    taken = interleaved(contestants, data.rounds)
    of_quarter, of_whole = taken[small.name], taken[large.name]
    report = Report(f"Committed offsets, {_commits(whole):,} commits")
    report.figures = [
        Figure(
            "of the time of reading the same columns",
            ratio(of_whole.wall, taken[_READ].wall),
            at_most=2.0,
        ),
        Figure("the same in processor time", ratio(of_whole.cpu, taken[_READ].cpu)),
        Figure(
            "times as long for four times the commits",
            statistics.median(of_whole.wall) / statistics.median(of_quarter.wall),
            at_most=4.4,
        ),
    ]
    report.add_times(taken)
    return [report]


def _decoded(data: Data, part: int) -> Workspace:
    """Decode generated segments of all commits, or of one in so many."""
    commits = COMMITS_IF_QUICK if data.rounds == 1 else COMMITS
    dump, out = data.folder / f"commits-{part}", data.folder / f"decoded-{part}"
    size = commits * _BYTES // _PARTITIONS
    write_dump(dump, Options(size=size, groups=_GROUPS), _PARTITIONS // part)
    decode_into(str(out), Console(quiet=True), inputs=[str(dump)], master="local[2]")
    shutil.rmtree(dump)
    return Workspace(str(out))


def _commits(workspace: Workspace) -> int:
    kinds = workspace.manifest()["record_types"]
    return sum(kind["records"] for kind in kinds if kind["table"] == "offset_commit")


def _replay(workspace: Workspace) -> int:
    """Return how many offsets are in force."""
    rules = replay_rules(NEWEST)
    return sum(committed_offsets(each, rules).height for each in _frames(workspace))


def _frames(workspace: Workspace) -> Iterator[dict[str, pl.DataFrame]]:
    """Read bucket after bucket."""
    reader = RecordReader(workspace)
    for bucket in buckets(CONSUMER_OFFSETS, reader.counts(_TABLES)):
        yield {table: reader.table(table, bucket) for table in _TABLES}
