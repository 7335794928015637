"""The library and the data source over Spark Connect give what they give without Spark."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from analytics.questions.question import QUESTIONS
from tests.support.worker_environments import pins_of, python_with


@pytest.mark.long
def test_answers_over_spark_connect_are_those_of_one_process(
    failover_dump: Path, failover_workspace: Path, repository: Path
) -> None:
    ran = subprocess.run(
        [
            *(sys.executable, "-m", "tests.spark.over_connect"),
            *(str(failover_dump), str(failover_workspace)),
        ],
        cwd=repository,
        env={**os.environ, "PYSPARK_PYTHON": sys.executable},
        capture_output=True,
        encoding="utf-8",
        timeout=600,
        check=False,
    )
    assert ran.returncode == 0, ran.stderr[-3000:]
    report = json.loads(ran.stdout.splitlines()[-1])
    assert report["is_remote"]
    assert report["differ"] == []
    assert {"groups", "lag.lag", "forensics.incident_owners"} <= set(report["tables"])
    assert {each.partition(".")[0] for each in report["tables"] if "." in each} <= set(QUESTIONS)
    assert report["rows"] > 1000
    assert report["commits"] > 100
    assert report["is_stored_as_it_is"]
    assert report["stored"] > 100
    assert report["error"].startswith("segment ")


@pytest.mark.long
def test_the_example_sends_groupscope_to_workers_that_lack_it(
    failover_dump: Path, repository: Path, tmp_path: Path
) -> None:
    libraries = set(pins_of(repository / "requirements" / "worker.txt"))
    python = python_with(tmp_path / "environment", libraries)
    ran = subprocess.run(
        [sys.executable, "examples/connect/notebook.py", str(failover_dump)],
        cwd=repository,
        env={**os.environ, "PYSPARK_PYTHON": str(python)},
        capture_output=True,
        encoding="utf-8",
        timeout=600,
        check=False,
    )
    assert ran.returncode == 0, ran.stderr[-3000:]
    rows = [
        tuple(each.strip() for each in line.strip("|").split("|"))
        for line in ran.stdout.splitlines()
        if line.startswith("|")
    ]
    assert rows[0] == ("group_id", "count")
    assert rows[6] == ("group_id", "topic", "partition", "lag")
    assert len(rows) == 12
    assert [int(count) for _, count in rows[1:6]] == sorted(
        (int(count) for _, count in rows[1:6]), reverse=True
    )
