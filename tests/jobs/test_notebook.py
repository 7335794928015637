"""The example of the library does what it says."""

from __future__ import annotations

import os
import runpy
import subprocess
import sys
from pathlib import Path

import pytest


@pytest.mark.usefixtures("spark")
def test_the_example_shows_what_the_failover_lost_and_how_even_assignments_are(
    repository: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """On the session that is there, as in a notebook."""
    script = str(repository / "examples" / "notebook.py")
    monkeypatch.setattr(sys, "argv", [script])
    monkeypatch.setenv("PYSPARK_PYTHON", sys.executable)
    runpy.run_path(script, run_name="__main__")
    assert_shown(capsys.readouterr().out)


@pytest.mark.long
def test_the_example_starts_a_session_of_its_own(repository: Path) -> None:
    ran = subprocess.run(
        [sys.executable, str(repository / "examples" / "notebook.py")],
        env={**os.environ, "PYSPARK_PYTHON": sys.executable},
        capture_output=True,
        encoding="utf-8",
        timeout=900,
        check=False,
    )
    assert ran.returncode == 0, ran.stderr
    assert_shown(ran.stdout)


def assert_shown(printed: str) -> None:
    rows = [
        tuple(each.strip() for each in line.strip("|").split("|"))
        for line in printed.splitlines()
        if line.startswith("|")
    ]
    assert rows[0] == ("group_id", "topic", "partition", "was", "committed_offset", "complete")
    assert ("parcel-router", "parcels", "2", "180", "0", "true") in rows
    balance = rows[rows.index(("group_id", "verdict", "score", "cause")) + 1 :]
    assert len(balance) == 5
    assert [float(score) for _, _, score, *_ in balance if score != "NULL"]
