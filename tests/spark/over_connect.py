"""Asks a dump over Spark Connect and without Spark; prints as JSON where the answers differ.

    python -m tests.spark.over_connect DUMP

A process of its own: Spark Connect and a session of the classic kind do not go together in one.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from unittest import mock

import polars as pl
from pyspark.sql import SparkSession
from pyspark.sql.connect.dataframe import DataFrame

from analytics import State, open_dump
from analytics.decode.source import KafkaDump
from analytics.errors import InputUnreadableError
from analytics.questions.expiration import question as expiration
from analytics.questions.lag import question as lag
from analytics.questions.timeline import group_verdicts
from analytics.spark_tasks import run_tasks
from tests.conftest import ELECTION

QUESTIONS = {
    "lag": {"by": "group"},
    "expiration": {},
    "timeline": {},
    "usage": {},
    "forensics": {"around": ELECTION},
}


def tables_of(state: State) -> Iterator[tuple[str, pl.DataFrame]]:
    """Yield the tables of a replay, and those of the answers to questions, by name."""
    for name in state.tables:
        yield name, framed(state.table(name))
    for question, settings in QUESTIONS.items():
        answer = state.ask(question, **settings)
        for name in answer.tables:
            yield f"{question}.{name}", framed(answer.table(name))


def framed(table: pl.DataFrame | DataFrame) -> pl.DataFrame:
    """Return a table with its rows in an order of their values."""
    rows = pl.DataFrame(pl.from_arrow(table.toArrow())) if isinstance(table, DataFrame) else table
    rows = rows.with_columns(pl.selectors.datetime().cast(pl.Datetime("us", "UTC")))
    as_text = rows.with_columns(pl.selectors.by_dtype(pl.List(pl.String)).cast(pl.List(pl.String)))
    return as_text.select(pl.struct(pl.all()).map_elements(repr, pl.String).alias("row")).sort(
        "row"
    )


def damaged(number: int) -> int:
    """Fail as a task does that reads what is not there."""
    raise InputUnreadableError(f"segment {number} is damaged")


def main(dump: str) -> None:
    """Compare, and print what differs."""
    spark = SparkSession.builder.remote("local[2]").getOrCreate()
    with open_dump(dump) as opened:
        here = dict(tables_of(opened.replay()))
    small = ("analytics.library.dump.is_small_plan", "analytics.library.dump.is_small_workspace",
             "analytics.library.state.is_small_workspace")  # fmt: skip
    for each in small:
        mock.patch(each, return_value=False).start()
    for module in (lag, expiration, group_verdicts):
        mock.patch.object(module, "AT_ONCE", 50).start()
    with open_dump(dump) as opened:
        state = opened.replay(spark)
        is_remote = isinstance(state.groups, DataFrame)
        there = dict(tables_of(state))
    spark.dataSource.register(KafkaDump)
    commits = spark.read.format("kafka_dump").option("table", "offset_commit").load(dump)
    try:
        error = str(run_tasks(spark, 3, damaged))
    except InputUnreadableError as raised:
        error = str(raised)
    report = {
        "is_remote": is_remote,
        "tables": sorted(there),
        "differ": [
            name
            for name in sorted({*here, *there})
            if name not in here or name not in there or not here[name].equals(there[name])
        ],
        "rows": sum(each.height for each in there.values()),
        "commits": commits.count(),
        "error": error,
    }
    print(json.dumps(report))
    spark.stop()


if __name__ == "__main__":
    main(sys.argv[1])
