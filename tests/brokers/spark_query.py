"""A query of Structured Streaming over a real broker's topic, and its group's committed offsets.

Run as ``python -m tests.brokers.spark_query --keep DIR``: Maven fetches the broker and Spark's
Kafka source; a query reads a topic in batches, and Kafka's own tool commits offsets of a group, as
a listener of the query would. DIR then has the checkpoint folder and the broker's log directories,
stopped.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path

import click

from tests.brokers.broker import Addresses, Broker
from tests.brokers.programs import Programs, fetch_programs
from tests.brokers.releases import Release, broker_settings
from tests.support.kafka_jars import require, run

RELEASE = "4.3.1"
SPARK = "4.2.0"
"""The last release of Spark whose Kafka source Maven has; its checkpoints are those of ours."""
GROUP = "etl"
TOPICS: Mapping[str, int] = {"orders": 4, "returns": 1}
COUNTS = ("10", "5", "2")
"""Records a partition: the query reads the first two lots, and is stopped then."""
COMMITTED: Mapping[str, tuple[str, ...]] = {
    "orders:0": ("--to-latest",),
    "orders:1": ("--to-offset", "15"),
    "orders:2": ("--to-earliest",),
}
"""Where the group is put: beyond the query, where it is, behind it; and nowhere in the others."""

_GROUPS = "org.apache.kafka.tools.consumer.group.ConsumerGroupCommand"
_KAFKA_SOURCE = ("spark-sql-kafka", "spark-token-provider", "kafka-clients", "commons-pool2")
_POM = f"""<project>
  <modelVersion>4.0.0</modelVersion>
  <groupId>groupscope</groupId><artifactId>spark-kafka</artifactId><version>1</version>
  <packaging>pom</packaging>
  <dependencies><dependency>
    <groupId>org.apache.spark</groupId><artifactId>spark-sql-kafka-0-10_2.13</artifactId>
    <version>{SPARK}</version>
  </dependency></dependencies>
</project>
"""


def fetch_kafka_source(folder: Path) -> str:
    """Return the jars of Spark's Kafka source, with commas between.

    Raises:
        JarsUnavailableError: They cannot be had here.
    """
    require("mvn", "java")
    pom = folder / "spark.xml"
    pom.write_text(_POM)
    listed = folder / "spark.txt"
    goal = ["dependency:build-classpath", f"-Dmdep.outputFile={listed}"]
    run(["mvn", "--quiet", "--batch-mode", "--file", str(pom), *goal])
    jars = listed.read_text().strip().split(":")
    return ",".join(each for each in jars if Path(each).name.startswith(_KAFKA_SOURCE))


def play(folder: Path, python: str = sys.executable) -> tuple[Path, Path]:
    """Return the checkpoint folder of the query, and the broker's log directory.

    Args:
        folder: Where all of it is made.
        python: The interpreter that has a Spark for the source.

    Raises:
        JarsUnavailableError: Maven cannot fetch what is needed.
    """
    release = Release(RELEASE)
    programs = fetch_programs(release, folder)
    jars = fetch_kafka_source(folder)
    addresses = Addresses.free()
    settings = broker_settings(release, 1) | {"log.segment.bytes": "1048576"}
    broker = Broker(programs, addresses, settings, folder / "broker")
    broker.format(release)
    broker.start()
    try:
        for name in TOPICS:
            _create(programs, addresses, name)
        topics = ",".join(f"{name}:{count}" for name, count in TOPICS.items())
        query = [python, "-m", "tests.support.kafka_query", jars, addresses.bootstrap, topics]
        subprocess.run([*query, str(folder / "query"), *COUNTS], check=True)
        for place, how in COMMITTED.items():
            which = ("--group", GROUP, "--topic", place, "--reset-offsets")
            _committed(programs, addresses, *which, *how, "--execute")
        _asked(programs, "TopicCommand", addresses, "--delete", "--topic", "returns")
        _create(programs, addresses, "returns")
    finally:
        broker.stop()
    return folder / "query" / "checkpoint", broker.log_dir


def _create(programs: Programs, addresses: Addresses, topic: str) -> None:
    which = ("--create", "--topic", topic, "--partitions", str(TOPICS[topic]))
    _asked(programs, "TopicCommand", addresses, *which)


def _asked(programs: Programs, tool: str, addresses: Addresses, *arguments: str) -> str:
    where = ("--bootstrap-server", addresses.bootstrap)
    return run(programs.tool(tool, *where, *arguments))


def _committed(programs: Programs, addresses: Addresses, *arguments: str) -> None:
    where = ("--bootstrap-server", addresses.bootstrap)
    run(["java", "-cp", programs.tools_class_path, _GROUPS, *where, *arguments])


@click.command(help=(__doc__ or "").split("\n", maxsplit=1)[0])
@click.option("--keep", type=click.Path(path_type=Path), required=True, help="A new folder.")
@click.option("--python", default=sys.executable, help="The interpreter of the query.")
def main(keep: Path, python: str) -> None:
    """Perform, and keep what comes of it."""
    with tempfile.TemporaryDirectory() as made:
        checkpoint, log_dir = play(Path(made), python)
        shutil.copytree(checkpoint, keep / "checkpoint")
        shutil.copytree(log_dir, keep / "broker-1")


if __name__ == "__main__":
    main()
