"""A dump asked over Spark Connect, where there is no `sparkContext`: shared clusters of others.

    python examples/connect/notebook.py DUMP

Run in tests: this file, with the server that PySpark starts here, whose workers lack groupscope.
Not run: on Databricks, or on any server on another machine.

`SPARK_REMOTE` names the server (`sc://host:15002`). In a notebook that has a session, begin
with `ship_packages(spark)`. Executors need Python of the same version as here, with the
packages of `requirements/worker.txt`; DUMP is a place that the server's machines see.
"""

from __future__ import annotations

import os
import sys

from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from groupscope import KafkaDump, open_dump, ship_packages


def main(inputs: str) -> None:
    """Count commits of each group where the server runs, and show which groups are behind."""
    server = os.environ.get("SPARK_REMOTE", "local[2]")
    spark = SparkSession.builder.remote(server).getOrCreate()
    ship_packages(spark)
    spark.dataSource.register(KafkaDump)
    commits = spark.read.format("kafka_dump").option("table", "offset_commit").load(inputs)
    by_group = commits.groupBy(F.col("key.group").alias("group_id")).count()
    by_group.orderBy(F.desc("count"), "group_id").show(5, truncate=False)
    state = open_dump(inputs).replay(spark)
    answer = state.lag()
    worst = answer.lag.select("group_id", "topic", "partition", "lag").orderBy(F.desc("lag"))
    worst.show(5, truncate=False)
    for each in answer.cannot_tell:
        print(f"cannot tell: {each}")


if __name__ == "__main__":
    main(sys.argv[1])
