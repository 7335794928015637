"""The library and the data source over Spark Connect give what they give without Spark."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from analytics.questions.registry import QUESTIONS


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
