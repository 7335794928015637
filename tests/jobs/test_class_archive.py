"""Spark's classes are kept once and taken from there by every session on one machine."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

SESSION = """
import sys
from pathlib import Path
import jobs.spark.session
jobs.spark.session.CLASS_ARCHIVE = Path(sys.argv[1])
from jobs.cli.console import Console
if sys.argv[2] == "make":
    import jobs.spark.class_archive
    jobs.spark.class_archive.CLASS_ARCHIVE = Path(sys.argv[1])
    assert jobs.spark.class_archive.make(sys.argv[3])
else:
    small = sys.argv[2] == "small"
    with jobs.spark.session.spark_session(Console(quiet=True), small=small) as spark:
        beans = spark._jvm.java.lang.management.ManagementFactory
        print(spark.range(10).count(), *beans.getRuntimeMXBean().getInputArguments())
"""


def run(*arguments: str | Path) -> str:
    return subprocess.run(
        [sys.executable, "-c", SESSION, *map(str, arguments)],
        env={**os.environ, "PYTHONWARNINGS": "default"},
        capture_output=True,
        text=True,
        check=True,
    ).stdout


@pytest.mark.parametrize(
    "content",
    [pytest.param(None, marks=pytest.mark.long), b"no archive"],
    ids=["none", "broken"],
)
def test_without_an_archive_that_suits_spark_starts_as_ever(
    tmp_path: Path, content: bytes | None
) -> None:
    archive = tmp_path / "classes.jsa"
    if content is not None:
        archive.write_bytes(content)
    told = run(archive, "small")
    assert told.startswith("10 ")
    assert (f"-XX:SharedArchiveFile={archive}" in told) == (content is not None)


@pytest.mark.long
def test_an_archive_is_made_from_a_dump_and_serves_sessions_of_both_sizes(
    repository: Path, tmp_path: Path
) -> None:
    archive = tmp_path / "with space" / "classes.jsa"
    run(archive, "make", repository / "examples" / "kafka-4.3.1-failover")
    assert archive.stat().st_size > 1_000_000
    assert [each.name for each in archive.parent.iterdir()] == [archive.name]
    for size in ("small", "large"):
        told = run(archive, size)
        assert told.startswith("10 ")
        assert f"-XX:SharedArchiveFile={archive}" in told
