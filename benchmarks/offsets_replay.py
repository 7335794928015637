"""Committed offsets replayed on Spark, against Spark merely reading the same columns of the tables.

The tables are what `groupscope decode` makes of generated segments: of ten million commits
of about a million offsets, and of a quarter of them. What is timed ends in Spark's noop sink.
"""

from __future__ import annotations

import shutil
import statistics
from typing import TYPE_CHECKING

from analytics.replay.log.rules import NEWEST, replay_rules
from analytics.replay.offsets.offset_state import committed_offsets
from analytics.tables.decoded_frames import decoded_frames
from analytics.workspace import Workspace
from benchmarks.generate import Options, write_dump
from benchmarks.measure import Contestant, interleaved, ratio, sunk, tree_cpu
from benchmarks.report import Figure, Report
from jobs.cli.console import Console
from jobs.runs.decode.run import decode_into
from jobs.spark.session import spark_session

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pyspark.sql import DataFrame

    from benchmarks.data import Data

COMMITS = 10_000_000
COMMITS_IF_QUICK = 20_000
_GROWTH = 4
_BYTES = 124  # of segments, a commit
_PARTITIONS = 4
_GROUPS = 160  # in each of them, with some 1,500 offsets
_WARM_UP = 2
_READ = "Spark reads the same columns"
_TABLES = ("offset_commit", "control_markers")


def run(data: Data) -> list[Report]:
    """Measure."""
    commits = COMMITS_IF_QUICK if data.rounds == 1 else COMMITS
    quarter, whole = (_decoded(data, each) for each in (commits // _GROWTH, commits))
    with spark_session(Console(quiet=True), master="local[2]") as spark:
        small, large = (decoded_frames(spark, each) for each in (quarter, whole))
        ours = {
            _commits(each): _replay(f"replay of {_commits(each):,} commits", frames)
            for each, frames in ((quarter, small), (whole, large))
        }
        read = Contestant(_READ, sunk(lambda: _columns(large)), tree_cpu)
        contestants = [*ours.values(), read]
        interleaved(contestants, min(_WARM_UP, data.rounds))
        taken = interleaved(contestants, data.rounds)
    of_quarter, of_whole = (taken[each.name] for each in ours.values())
    report = Report(f"Committed offsets on local[2], {_commits(whole):,} commits")
    report.figures = [
        Figure(
            "of the time of reading the same columns",
            ratio(of_whole.wall, taken[_READ].wall),
            at_most=3.0,
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


def _decoded(data: Data, commits: int) -> Workspace:
    """Decode generated segments of about so many commits."""
    dump, out = data.folder / f"commits-{commits}", data.folder / f"decoded-{commits}"
    size = commits * _BYTES // _PARTITIONS
    write_dump(dump, Options(size=size, groups=_GROUPS), _PARTITIONS)
    decode_into(str(out), Console(quiet=True), inputs=[str(dump)], master="local[2]")
    shutil.rmtree(dump)
    return Workspace(str(out))


def _commits(workspace: Workspace) -> int:
    kinds = workspace.manifest()["record_types"]
    return sum(kind["records"] for kind in kinds if kind["table"] == "offset_commit")


def _replay(name: str, decoded: Mapping[str, DataFrame]) -> Contestant:
    rules = replay_rules(NEWEST)
    return Contestant(name, sunk(lambda: committed_offsets(decoded, rules)), tree_cpu)


def _columns(decoded: Mapping[str, DataFrame]) -> DataFrame:
    """Return the columns that the replay reads, as they are stored."""
    commits, markers = (decoded[name] for name in _TABLES)
    return commits.select(
        *("topic", "partition", "offset", "is_tombstone", "key.group"),
        *("producer_id", "producer_epoch", "is_transactional", "leader_epoch"),
        commits["key.topic"].alias("data_topic"),
        commits["key.partition"].alias("data_partition"),
        commits["value"],
    ).unionByName(
        markers.select("topic", "partition", "offset", "producer_id"), allowMissingColumns=True
    )
