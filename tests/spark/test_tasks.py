"""What runs in tasks on Spark comes back in the order of its numbers."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import pytest
from pyspark.errors import PySparkException

from analytics.errors import ReadFailedError
from analytics.spark_tasks import run_tasks

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def test_every_number_has_a_task_and_gives_back_what_it_made(spark: SparkSession) -> None:
    found = run_tasks(spark, 5, lambda number: {"number": number, "worker": os.getpid()})
    assert [each["number"] for each in found] == [0, 1, 2, 3, 4]
    assert os.getpid() not in {each["worker"] for each in found}
    assert run_tasks(spark, 0, lambda number: number) == []


def test_a_task_that_fails_ends_the_work_with_its_reason(spark: SparkSession) -> None:
    def fails(number: int) -> int:
        raise OSError(f"cannot read file {number}")

    with pytest.raises(PySparkException, match="cannot read file"):
        run_tasks(spark, 2, fails)


def test_an_error_of_ours_comes_back_as_what_it_is_with_its_one_line(spark: SparkSession) -> None:
    def fails(number: int) -> int:
        raise ReadFailedError(f"/data/{number}.log: cannot be read (Stale file handle)")

    with pytest.raises(ReadFailedError, match=r"^/data/\d\.log: cannot .*handle\)$"):
        run_tasks(spark, 2, fails)
