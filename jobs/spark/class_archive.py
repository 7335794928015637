"""Spark's classes as the JVM wants them in memory, in a file: Spark starts in half the time.

Most of what a command on a small dump waits for is a JVM that reads, checks and links some ten
thousand classes (class-data sharing, JEP 350). `python -m jobs.spark.class_archive INPUT` decodes a
dump and keeps the classes that took, in the environment that groupscope is installed in. A JVM that
the file is not for, or whose jars have changed since, leaves it alone.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from analytics.errors import EnvironmentUnfitError
from jobs.cli.console import Console
from jobs.spark.session import CLASS_ARCHIVE, jvm_options
from jobs.workspaces.decoding import decode_into

_PATIENCE = 300  # seconds for the JVM to write it


def make(dump: str) -> bool:
    """Decode a dump and write `CLASS_ARCHIVE`; return whether this Java could."""
    from pyspark import SparkContext  # noqa: PLC0415 - heavy: only where Spark runs

    CLASS_ARCHIVE.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=CLASS_ARCHIVE.parent) as folder:
        written = Path(folder) / CLASS_ARCHIVE.name
        options = [*jvm_options(small=True), f'"-XX:ArchiveClassesAtExit={written}"']
        conf = {"spark.driver.extraJavaOptions": " ".join(options)}
        try:
            decode_into(f"{folder}/decoded", Console(quiet=True), inputs=[dump], conf=conf)
        except EnvironmentUnfitError:
            return False
        # The JVM writes the file when it ends, and it ends when nobody speaks to it any more.
        # Nothing public leads there; where it has another name by now there is no archive.
        gateway: Any = getattr(SparkContext, "_gateway", None)
        if gateway is None:
            return False
        gateway.shutdown()
        gateway.proc.stdin.close()
        try:
            gateway.proc.wait(_PATIENCE)
        except subprocess.TimeoutExpired:
            gateway.proc.kill()
            return False
        if not written.exists():
            return False
        written.replace(CLASS_ARCHIVE)
        return True


if __name__ == "__main__" and not make(sys.argv[1]):
    Console().warn("this Java cannot keep an archive of classes; commands start more slowly")
