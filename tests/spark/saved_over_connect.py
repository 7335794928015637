"""Saves a replay to a schema over Spark Connect, or says what is there, as JSON.

    python -m tests.spark.saved_over_connect ADDRESS save|killed|read SCHEMA FORMAT WORKSPACE

A process of its own: Spark Connect and a session of the classic kind do not go together in one.
"""

from __future__ import annotations

import json
import os
import signal
import sys
from typing import TYPE_CHECKING
from unittest import mock

from pyspark.sql import SparkSession

from analytics import State, open_dump
from analytics.library.saved_tables import Target
from tests.support.value_order import in_value_order

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from analytics.library.saved_runs import Run

TABLES = ("groups", "pending_offsets", "share_batches", "share_partitions")
"""Of these the second and the third have integers of less than four bytes."""
IN_BETWEEN = TABLES[2]
WRITTEN = Target._overwrite


def killed_at(self: Target, run: Run, name: str, frame: DataFrame) -> None:
    """Write a table as ever, but for one at which the process is killed."""
    if name == IN_BETWEEN:
        os.kill(os.getpid(), signal.SIGKILL)
    WRITTEN(self, run, name, frame)


def read(spark: SparkSession, schema: str, state: State) -> dict[str, object]:
    """Return what the schema has: runs, and tables whose rows are not those of the state."""
    there = spark.table(f"{schema}.saved_runs").collect()
    saved = {(each.cluster, each.run_id): each.saved_tables for each in there}
    differ = []
    for cluster, run_id in saved:
        for name in TABLES:
            own = spark.table(f"{schema}.{name}").where(
                f"cluster = '{cluster}' and run_id = '{run_id}'"
            )
            rows = state.table(name)
            ours = in_value_order(rows)
            theirs = in_value_order(own.select(rows.columns).toArrow())
            if not ours.equals(theirs):
                differ.append(f"{name} of {cluster}")
    return {
        "runs": {
            cluster: {each["table"]: each["rows"] for each in tables}
            for (cluster, _), tables in saved.items()
        },
        "rows": {name: spark.table(f"{schema}.{name}").count() for name in TABLES},
        "differ": differ,
    }


def main(address: str, act: str, schema: str, table_format: str, workspace: str) -> None:
    """Do one act, and print what came of it."""
    spark = SparkSession.builder.remote(address).getOrCreate()
    spark.sql(f"CREATE SCHEMA IF NOT EXISTS {schema}")
    with open_dump(workspace) as dump:
        if act == "read":
            print(json.dumps(read(spark, schema, dump.replay())))
            return
        state = dump.replay(spark)
        if act == "killed":
            mock.patch.object(Target, "_overwrite", killed_at).start()
        else:
            state.save(schema, tables=TABLES, table_format=table_format, cluster="test")
        saved = state.save(schema, tables=TABLES, table_format=table_format, cluster="prod")
        print(json.dumps(saved))


if __name__ == "__main__":
    main(*sys.argv[1:])
