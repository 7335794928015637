"""The example of the library does what it says."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path


def test_the_example_shows_what_the_failover_lost_and_how_even_assignments_are(
    repository: Path,
) -> None:
    told = subprocess.run(
        [sys.executable, str(repository / "examples" / "notebook.py")],
        env={**os.environ, "PYSPARK_PYTHON": sys.executable},
        capture_output=True,
        encoding="utf-8",
        timeout=900,
        check=False,
    )
    rows = [
        tuple(each.strip() for each in line.strip("|").split("|"))
        for line in told.stdout.splitlines()
        if line.startswith("|")
    ]
    assert rows[0] == ("group_id", "topic", "partition", "was", "committed_offset", "complete")
    assert ("parcel-router", "parcels", "2", "180", "0", "true") in rows, told.stderr
    balance = rows[rows.index(("group_id", "verdict", "score", "cause")) + 1 :]
    assert len(balance) == 5
    assert [float(score) for _, _, score, *_ in balance if score != "NULL"]
