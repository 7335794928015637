"""Archived rows on Spark: put in log order, told apart from their duplicates, decoded."""

from __future__ import annotations

import pickle
import uuid
from dataclasses import dataclass, field
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from analytics.decode.chunks import decode_chunk
from analytics.decode.parts import PartWriter
from analytics.decode.tables import Origin
from analytics.decode.tasks import SliceReport
from analytics.dump.raw_rows import raw_records
from analytics.spark_worker import on_worker

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import NDArray
    from pyspark.sql import DataFrame

    from analytics.decode.tasks import Settings
    from analytics.workspace import Part

ORDER = ("topic", "partition", "offset")


@dataclass
class RowsReport:
    """Where the archived rows of one partition went; times in milliseconds."""

    topic: str
    partition: int
    first_offset: int
    rows: int = 0
    end_offset: int = 0
    first_timestamp: int | None = None
    last_timestamp: int | None = None
    counts: SliceReport = field(default_factory=lambda: SliceReport(-1))


@dataclass(frozen=True)
class ArchiveReport:
    """Parts written by one Spark task, and one report a partition of the internal topics."""

    parts: list[Part]
    partitions: list[RowsReport]


def decode_rows_on_spark(
    frame: DataFrame, settings: Settings, topics: tuple[str, ...], tasks: int
) -> list[ArchiveReport]:
    """Decode archived rows (columns as ``read_raw_rows`` gives them) of some internal topics."""

    @on_worker
    def run(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        report = pickle.dumps(_run_partition(batches, settings))
        yield pa.RecordBatch.from_pydict({"report": pa.array([report], pa.binary())})

    ordered = (
        frame.where(frame["topic"].isin(*topics))
        .repartition(tasks, "topic", "partition")
        .sortWithinPartitions(*ORDER)
    )
    rows = ordered.mapInArrow(run, "report binary").collect()
    reports: list[ArchiveReport] = [pickle.loads(row.report) for row in rows]  # noqa: S301 - our own workers wrote it
    return sorted(reports, key=_place)


def _place(report: ArchiveReport) -> tuple[str, int]:
    first = report.partitions[:1]
    return (first[0].topic, first[0].partition) if first else ("", -1)


def _run_partition(batches: Iterator[pa.RecordBatch], settings: Settings) -> ArchiveReport:
    reports: dict[tuple[str, int], RowsReport] = {}
    previous: dict[str, Any] | None = None
    with PartWriter(f"{settings.staging}/rows-{uuid.uuid4().hex[:12]}") as writer:
        for batch in batches:
            rows = pa.Table.from_batches([batch])
            for part in _of_one_partition(rows):
                previous = _decode(part, previous, reports, settings, writer)
        return ArchiveReport(writer.finish(), list(reports.values()))


def _of_one_partition(rows: pa.Table) -> Iterator[pa.RecordBatch]:
    """Cut sorted rows where the topic or the partition changes."""
    if not rows.num_rows:
        return
    topic = rows["topic"].combine_chunks().dictionary_encode().indices.to_numpy()
    partition = rows["partition"].combine_chunks().to_numpy()
    changes = (topic[1:] != topic[:-1]) | (partition[1:] != partition[:-1])
    bounds = [0, *(np.flatnonzero(changes) + 1).tolist(), rows.num_rows]
    for first, end in pairwise(bounds):
        yield rows.slice(first, end - first).combine_chunks().to_batches()[0]


def _decode(
    rows: pa.RecordBatch,
    previous: dict[str, Any] | None,
    reports: dict[tuple[str, int], RowsReport],
    settings: Settings,
    writer: PartWriter,
) -> dict[str, Any]:
    topic, partition = rows["topic"][0].as_py(), rows["partition"][0].as_py()
    report = reports.get((topic, partition))
    if report is None:
        report = RowsReport(topic, partition, rows["offset"][0].as_py())
        reports[topic, partition] = report
    _measure(report, rows)
    repeated, conflicting = _repetitions(rows, previous)
    report.counts.left_out["duplicate_copy"] += int(repeated.sum())
    last: dict[str, Any] = rows.slice(rows.num_rows - 1).to_pylist()[0]
    records = raw_records(rows.filter(pa.array(~repeated)))
    decoded = decode_chunk(
        records,
        [],
        Origin(topic, partition),
        settings.selection,
        conflicting=np.flatnonzero(conflicting[~repeated]),
    )
    report.counts.counted(decoded)
    for table, batch in decoded.batches.items():
        writer.write(f"decoded/{table}", batch)
    return last


def _measure(report: RowsReport, rows: pa.RecordBatch) -> None:
    report.rows += rows.num_rows
    report.end_offset = rows["offset"][rows.num_rows - 1].as_py() + 1
    timed = rows["timestamp"].filter(pc.greater_equal(rows["timestamp"], 0))
    if len(timed):
        least, most = (value.as_py() for value in pc.min_max(timed).values())
        first, last = report.first_timestamp, report.last_timestamp
        report.first_timestamp = least if first is None else min(first, least)
        report.last_timestamp = most if last is None else max(last, most)


def _repetitions(
    rows: pa.RecordBatch, previous: dict[str, Any] | None
) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
    """Rows whose offset the row before has: equal ones, and ones that contradict it."""
    offset = rows["offset"].to_numpy()
    same = np.append(False, offset[1:] == offset[:-1])
    here = rows["topic"][0].as_py(), rows["partition"][0].as_py(), int(offset[0])
    same[0] = previous is not None and tuple(previous[name] for name in ORDER) == here
    repeated, conflicting = np.zeros(same.size, np.bool_), np.zeros(same.size, np.bool_)
    for row in np.flatnonzero(same).tolist():
        before = rows.slice(row - 1, 1).to_pylist()[0] if row else previous
        this = rows.slice(row, 1).to_pylist()[0]
        equal = before is not None and (before["key"], before["value"]) == (
            this["key"],
            this["value"],
        )
        repeated[row], conflicting[row] = equal, not equal
    return repeated, conflicting
