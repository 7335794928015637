"""A Structured Streaming query over topics, in a process of its own: it needs Spark's Kafka jars.

``python -m tests.support.kafka_query JARS BOOTSTRAP TOPICS FOLDER COUNT...`` writes COUNT records
into each partition (`topic:partitions,...`) and lets the query read all there is, once for each
COUNT but the last, which it does not read. Its checkpoint is in FOLDER.
"""

from __future__ import annotations

import sys
from pathlib import Path

from jobs.cli.console import Console
from jobs.spark.session import spark_session


def main(jars: str, bootstrap: str, topics: str, folder: str, *counts: str) -> None:
    """Produce and read, in turns."""
    conf = {"spark.jars": jars, "spark.sql.shuffle.partitions": "1"}
    where = {"kafka.bootstrap.servers": bootstrap}
    partitions = {name: int(each) for name, each in (one.split(":") for one in topics.split(","))}
    with spark_session(Console(), master="local[1]", conf=conf, small=True) as spark:
        for turn, count in enumerate(counts, 1):
            for name, number in partitions.items():
                spark.range(int(count) * number).selectExpr(
                    "cast(id as string) as value", f"cast(id % {number} as int) as partition"
                ).write.format("kafka").options(topic=name, **where).save()
            if turn == len(counts):
                break
            subscribed = ",".join(partitions)
            lines = spark.readStream.format("kafka").options(subscribe=subscribed, **where)
            query = (
                lines.option("startingOffsets", "earliest")
                .load()
                .writeStream.format("parquet")
                .option("path", str(Path(folder) / "out"))
                .option("checkpointLocation", str(Path(folder) / "checkpoint"))
                .trigger(availableNow=True)
                .start()
            )
            query.awaitTermination()


if __name__ == "__main__":
    main(*sys.argv[1:])
