"""The session that commands run in."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest

from jobs.cli.console import Console
from jobs.spark.session import progress

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@pytest.mark.parametrize(
    ("setting", "value"),
    [
        ("spark.sql.session.timeZone", "UTC"),
        ("spark.sql.parquet.outputTimestampType", "TIMESTAMP_MICROS"),
        ("spark.ui.enabled", "false"),
        ("spark.driver.host", "127.0.0.1"),
    ],
)
def test_what_tables_rely_on_is_set(spark: SparkSession, setting: str, value: str) -> None:
    assert spark.conf.get(setting) == value


def test_workers_run_the_interpreter_that_started_them(spark: SparkSession) -> None:
    def interpreter(_: Iterator[int]) -> Iterator[str]:
        yield sys.executable

    found = spark.sparkContext.parallelize([0], 1).mapPartitions(interpreter).collect()
    assert found == [sys.executable]


def test_what_workers_print_does_not_mix_with_results(
    spark: SparkSession, capfd: pytest.CaptureFixture[str]
) -> None:
    def loud(part: Iterator[int]) -> Iterator[int]:
        print("printed by a worker", flush=True)
        yield from part

    assert spark.sparkContext.parallelize([1], 1).mapPartitions(loud).collect() == [1]
    assert capfd.readouterr().out == ""


class Terminal:
    """A stderr that says it is a terminal, and keeps what is written to it."""

    def __init__(self) -> None:
        self.text = ""

    def write(self, text: str) -> int:
        self.text += text
        return len(text)

    def flush(self) -> None: ...

    @staticmethod
    def isatty() -> bool:
        return True


def test_a_terminal_sees_how_many_tasks_are_done(
    spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    terminal = Terminal()
    monkeypatch.setattr(sys, "stderr", terminal)

    def slow(part: Iterator[int]) -> Iterator[int]:
        from time import sleep  # noqa: PLC0415 - runs in the worker

        sleep(0.2)
        yield from part

    with progress(spark, Console(), "working"):
        assert spark.sparkContext.parallelize(range(6), 6).mapPartitions(slow).count() == 6
    assert "working" in terminal.text
    assert "6 tasks done, 0 running" in terminal.text
    assert terminal.text.endswith("\r\x1b[K"), "nothing of it stays"


def test_nothing_is_drawn_where_there_is_no_terminal(
    spark: SparkSession, capsys: pytest.CaptureFixture[str]
) -> None:
    with progress(spark, Console(), "working"):
        spark.sparkContext.parallelize(range(2), 2).count()
    assert capsys.readouterr() == ("", "")
