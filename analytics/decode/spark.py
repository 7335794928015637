"""Tasks on Spark: one pass over the dump, whatever the number of tables."""

from __future__ import annotations

import pickle
from typing import TYPE_CHECKING

import pyarrow as pa

from analytics.decode.tasks import TaskReport, packed, run_task
from analytics.spark_worker import on_worker

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from pyspark.sql import SparkSession

    from analytics.decode.tasks import Settings
    from analytics.dump.model import Slice


def decode_on_spark(
    spark: SparkSession, slices: Sequence[Slice], settings: Settings
) -> list[TaskReport]:
    """Decode all slices; returns the reports of the attempts that succeeded, in task order.

    Parts of other attempts (failed, repeated, speculative) stay in the staging folder and are
    never published.
    """
    tasks = packed(slices)
    if not tasks:
        return []

    @on_worker
    def run(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            for number in batch.column(0).to_pylist():
                chosen = [(index, slices[index]) for index in tasks[number]]
                report = pickle.dumps(run_task(number, chosen, settings))
                yield pa.RecordBatch.from_pydict({"report": pa.array([report], pa.binary())})

    # One row, and so one Spark task, for each of ours.
    numbers = spark.range(0, len(tasks), 1, len(tasks))
    rows = numbers.mapInArrow(run, "report binary").collect()
    reports: list[TaskReport] = [pickle.loads(row.report) for row in rows]  # noqa: S301 - our own workers wrote it
    return sorted(reports, key=lambda report: report.number)
