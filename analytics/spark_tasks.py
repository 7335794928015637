"""Tasks on Spark: numbers are handed out, and what each gave comes back.

By DataFrames, which Spark Connect and clusters that others manage know, too; RDDs they do not.
"""

from __future__ import annotations

import pickle
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any, Final, TypeVar

import pyarrow as pa

from analytics.spark_worker import on_worker

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_SCHEMA: Final = pa.schema([("number", pa.int64()), ("report", pa.binary())])
_AS_SPARK: Final = "number long, report binary"
Result = TypeVar("Result")


def run_tasks(spark: SparkSession, count: int, run: Callable[[int], Result]) -> list[Result]:
    """Run a function for each number below `count`, each in a task of its own.

    Args:
        spark: The session.
        count: How many tasks.
        run: Is sent to workers. What it returns has to be small: it goes through the driver.

    Returns:
        What it returned, of the attempts that succeeded, in the order of numbers.
    """
    if not count:
        return []

    @on_worker
    def task(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            for number in batch.column(0).to_pylist():
                row = {"number": number, "report": pickle.dumps(run(number))}
                yield pa.RecordBatch.from_pylist([row], schema=_SCHEMA)

    numbers = spark.range(0, count, 1, count)
    rows = numbers.mapInArrow(task, _AS_SPARK).collect()
    reports: dict[int, Any] = {row["number"]: pickle.loads(row["report"]) for row in rows}  # noqa: S301 - our own tasks'
    return [reports[number] for number in range(count)]
