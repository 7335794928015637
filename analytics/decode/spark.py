"""Tasks on Spark: one pass over the dump, whatever the number of tables."""

from __future__ import annotations

from typing import TYPE_CHECKING

from analytics.decode.tasks import TaskReport, packed, run_task
from analytics.spark_tasks import run_tasks

if TYPE_CHECKING:
    from collections.abc import Sequence

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

    def run(number: int) -> TaskReport:
        return run_task(number, [(index, slices[index]) for index in tasks[number]], settings)

    return run_tasks(spark, len(tasks), run)
