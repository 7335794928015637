"""A server of Spark Connect whose Spark is one that releases of Delta Lake and Iceberg are for.

Maven fetches all of it. Ours is a newer Spark, which none of their releases fits yet: it is the
client.
"""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from tests.support.kafka_jars import JarsUnavailableError, class_path

SPARK: Final = "4.1.2"
PACKAGES: Final = (
    "io.delta:delta-spark_4.1_2.13:4.4.0",
    "org.apache.iceberg:iceberg-spark-runtime-4.1_2.13:1.12.0",
)
"""The newest release of each, for that Spark."""
SCHEMAS: Final = {"delta": "ops", "iceberg": "lake.ops"}
"""By format: a schema there, which takes tables of it."""

_OPENED: Final = (
    *("java.lang", "java.lang.invoke", "java.lang.reflect", "java.io", "java.net", "java.nio"),
    *("java.util", "java.util.concurrent", "java.util.concurrent.atomic"),
    *("sun.nio.ch", "sun.nio.cs", "sun.security.action", "sun.util.calendar"),
)
"""Packages of Java's that Spark reaches into, as its own start scripts let it."""
_PATIENCE: Final = 60.0


def _conf(folder: Path, port: int) -> dict[str, str]:
    return {
        "spark.master": "local[2]",
        "spark.app.name": "lakes",
        "spark.ui.enabled": "false",
        "spark.driver.host": "127.0.0.1",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.connect.grpc.binding.address": "127.0.0.1",
        "spark.connect.grpc.binding.port": str(port),
        "spark.sql.shuffle.partitions": "2",
        "spark.databricks.delta.snapshotPartitions": "1",
        # A number, where a client of Spark 4.3 cannot read this default of Spark 4.1 ("...b").
        "spark.sql.session.localRelationSizeLimit": str(3 * 1024**3),
        "spark.sql.warehouse.dir": str(folder / "delta"),
        "spark.sql.extensions": "io.delta.sql.DeltaSparkSessionExtension,"
        "org.apache.iceberg.spark.extensions.IcebergSparkSessionExtensions",
        "spark.sql.catalog.spark_catalog": "org.apache.spark.sql.delta.catalog.DeltaCatalog",
        "spark.sql.catalog.lake": "org.apache.iceberg.spark.SparkCatalog",
        "spark.sql.catalog.lake.type": "hadoop",
        "spark.sql.catalog.lake.warehouse": str(folder / "iceberg"),
    }


@contextmanager
def lake_server(folder: Path) -> Iterator[str]:
    """Start the server; return the address for `SparkSession.builder.remote`.

    Args:
        folder: For tables, and what the server says.

    Raises:
        JarsUnavailableError: It cannot be had here.
    """
    spark = [f"org.apache.spark:spark-{each}_2.13:{SPARK}" for each in ("connect", "sql")]
    classes = ":".join(map(str, class_path(folder, [*spark, *PACKAGES])))
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    command = [
        *("java", "-Xmx1g", "-XX:+IgnoreUnrecognizedVMOptions"),
        *(f"--add-opens=java.base/{each}=ALL-UNNAMED" for each in _OPENED),
        *(f"-D{name}={value}" for name, value in _conf(folder, port).items()),
        *("-cp", classes, "org.apache.spark.sql.connect.service.SparkConnectServer"),
    ]
    words = folder / "server.log"
    with words.open("w") as output:
        server = subprocess.Popen(
            command,
            env={**os.environ, "SPARK_LOCAL_IP": "127.0.0.1"},
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            cwd=folder,
        )
    try:
        _await(server, port, words)
        yield f"sc://127.0.0.1:{port}"
    finally:
        server.send_signal(signal.SIGKILL)
        server.wait()


def _await(server: subprocess.Popen[bytes], port: int, words: Path) -> None:
    end = time.monotonic() + _PATIENCE
    while time.monotonic() < end and server.poll() is None:
        with socket.socket() as tried:
            if tried.connect_ex(("127.0.0.1", port)) == 0:
                return
        time.sleep(0.2)
    raise JarsUnavailableError(f"Spark {SPARK} did not start:\n{words.read_text()[-3000:]}")
