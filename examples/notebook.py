"""A dump asked from a notebook or a job of your own: `python examples/notebook.py [DUMP]`."""

from __future__ import annotations

import os
import sys
from pathlib import Path

from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from groupscope import open_dump

BUNDLED = Path(__file__).with_name("kafka-4.3.1-failover")

KEY = ["group_id", "topic", "partition"]


def main(inputs: str) -> None:
    """Show which committed offsets fell in the failover, and how even assignments are."""
    # Spark's workers take the first python3 of PATH, which need not have groupscope in it.
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    spark = SparkSession.builder.master("local[2]").getOrCreate()
    dump = open_dump(inputs)
    before = dump.replay(spark, as_of="2026-11-21T09:18:30Z", tables=["committed_offsets"])
    now = dump.replay(spark, tables=["committed_offsets"])
    was = before.committed_offsets.select(*KEY, F.col("committed_offset").alias("was"))
    fallen = (
        was.join(now.committed_offsets.select(*KEY, "committed_offset", "complete"), KEY)
        .where("committed_offset < was")
        .orderBy(*KEY)
    )
    fallen.show(truncate=False)
    balance = dump.replay(spark).balance()
    worst_first = balance.assignment_balance.orderBy("score", "group_id")
    worst_first.select("group_id", "verdict", "score", "cause").show(5, truncate=False)
    for each in balance.cannot_tell:
        print(f"cannot tell: {each}")


if __name__ == "__main__":
    main(sys.argv[1] if len(sys.argv) > 1 else str(BUNDLED))
