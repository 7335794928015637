"""A Structured Streaming query over a topic, in a process of its own: it needs Spark's Kafka jars.

``python -m tests.support.kafka_query JARS BOOTSTRAP TOPIC FOLDER COUNT...`` writes COUNT records
into the topic and lets the query read all there is, once for each COUNT; its checkpoint is in
FOLDER.
"""

from __future__ import annotations

import sys
from pathlib import Path

from jobs.console import Console
from jobs.session import spark_session


def main(jars: str, bootstrap: str, topic: str, folder: str, *counts: str) -> None:
    """Produce and read, in turns."""
    conf = {"spark.jars": jars, "spark.sql.shuffle.partitions": "1"}
    where = {"kafka.bootstrap.servers": bootstrap}
    with spark_session(Console(), master="local[1]", conf=conf, small=True) as spark:
        for count in counts:
            records = spark.range(int(count)).selectExpr("cast(id as string) as value")
            records.write.format("kafka").options(topic=topic, **where).save()
            lines = spark.readStream.format("kafka").options(subscribe=topic, **where)
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
