"""Asks a dump over Spark Connect and without Spark; prints as JSON where the answers differ.

    python -m tests.spark.over_connect DUMP WORKSPACE

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

from analytics import KafkaDump, State, open_dump
from analytics.errors import InputUnreadableError
from analytics.questions.expiration import question as expiration
from analytics.questions.lag import question as lag
from analytics.questions.timeline import group_verdicts
from analytics.spark_tasks import run_tasks
from analytics.tables.stored_tables import StoredTables
from analytics.workspace import Workspace
from tests.conftest import ELECTION
from tests.support.value_order import in_value_order

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
    return in_value_order(table.toArrow() if isinstance(table, DataFrame) else table)


def damaged(number: int) -> int:
    """Fail as a task does that reads what is not there."""
    raise InputUnreadableError(f"segment {number} is damaged")


def main(dump: str, workspace: str) -> None:
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
    stored = spark.read.format("kafka_dump").option("table", "offset_history").load(workspace)
    files = in_value_order(StoredTables(Workspace(workspace)).read("offset_history"))
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
        "is_stored_as_it_is": framed(stored).equals(files),
        "stored": files.height,
        "error": error,
    }
    print(json.dumps(report))
    spark.stop()


if __name__ == "__main__":
    main(*sys.argv[1:])
