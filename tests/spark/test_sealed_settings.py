"""Secrets reach tasks, and nothing that Spark writes has them."""

from __future__ import annotations

import base64
import subprocess
import sys
from pathlib import Path

import pytest

from analytics.snapshot.sealed_settings import PROPERTY
from tests.conftest import ROOT

SECRET = b"hunter2"


@pytest.mark.long
def test_tasks_open_what_is_neither_in_event_logs_nor_in_settings(tmp_path: Path) -> None:
    ran = subprocess.run(
        [sys.executable, "-m", "tests.spark.sealed_in_tasks", str(tmp_path)],
        cwd=ROOT,
        capture_output=True,
        encoding="utf-8",
        check=False,
    )
    assert ran.returncode == 0, ran.stderr
    same, later, conf = ran.stdout.splitlines()
    assert (same, later) == ("[True, True]", "False True")
    assert "spark.eventLog.enabled" in conf
    assert "hunter2" not in conf + ran.stderr
    logs = b"".join(each.read_bytes() for each in tmp_path.rglob("*") if each.is_file())
    # Events of jobs, with their properties, are in it.
    assert PROPERTY.encode() in logs
    for form in (SECRET, SECRET.hex().encode(), base64.b64encode(SECRET)[:9]):
        assert form not in logs
