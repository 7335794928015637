"""Rows of a DataFrame against the same records as segments: decoded and replayed by the library.

In one session on `local[2]`, warmed up, each contestant once a round; Spark reads the rows from
Parquet and hands them over.

    python -m benchmarks archived_rows --segment 100MB
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from benchmarks.data import Data, size_of
from benchmarks.measure import Contestant, interleaved, ratio, tree_cpu
from benchmarks.report import Figure, Report
from benchmarks.spark import write_raw_rows
from groupscope import open_dump
from jobs.cli.console import Console
from jobs.spark.session import spark_session

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

_ROWS, _SEGMENTS = "rows of a DataFrame", "segments"
_COUNTED = ("committed_offsets", "groups")
_MOST_TIMES = 1.6


def run(data: Data) -> list[Report]:
    """Measure."""
    with spark_session(Console(quiet=True), master="local[2]") as spark:
        return [_of_session(spark, data)]


def _of_session(spark: SparkSession, data: Data) -> Report:
    folder = data.folder / "rows"
    records = write_raw_rows(data.dump, folder)
    from_rows = _replay(spark, lambda: spark.read.parquet(str(folder)))
    from_segments = _replay(spark, lambda: str(data.dump))
    counts = from_segments()
    assert from_rows() == counts, f"{from_rows()} and {counts}"
    contestants = [
        Contestant(_ROWS, from_rows, tree_cpu),
        Contestant(_SEGMENTS, from_segments, tree_cpu),
    ]
    times = interleaved(contestants, data.rounds)
    title = f"Decoded and replayed on local[2], {size_of(data.dump) / 1e6:,.0f} MB of segments"
    report = Report(f"{title}; ratios of wall time")
    report.figures = [
        Figure(
            "rows of a DataFrame, of the time of segments",
            ratio(times[_ROWS].wall, times[_SEGMENTS].wall),
            at_most=_MOST_TIMES,
        ),
        Figure("the same in processor time", ratio(times[_ROWS].cpu, times[_SEGMENTS].cpu)),
    ]
    report.add_times(times, records, size_of(data.dump))
    return report


def _replay(
    spark: SparkSession, source: Callable[[], str | DataFrame]
) -> Callable[[], dict[str, int]]:
    """Return work that opens a dump, replays it, and counts rows of its state."""

    def work() -> dict[str, int]:
        with open_dump(source()) as dump:
            state = dump.replay(spark)
            return {name: state.table(name).count() for name in _COUNTED}

    return work
