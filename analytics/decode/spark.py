"""Tasks on Spark: one pass over the dump, whatever the number of tables."""

from __future__ import annotations

from typing import TYPE_CHECKING

from analytics.decode.tasks import TaskReport, packed, run_task
from analytics.spark_worker import on_worker

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from pyspark.sql import SparkSession

    from analytics.decode.tasks import Settings
    from analytics.dump.files.model import Slice


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
    def run(numbers: Iterable[int]) -> Iterator[TaskReport]:
        for number in numbers:
            chosen = [(index, slices[index]) for index in tasks[number]]
            yield run_task(number, chosen, settings)

    # One Spark task for each of ours; nothing about them would have to be planned as a query.
    numbers = spark.sparkContext.parallelize(range(len(tasks)), len(tasks))
    reports = numbers.mapPartitions(run).collect()
    return sorted(reports, key=lambda report: report.number)
