"""`examples/cron/snapshot-audit-trend`, with a recorded cluster in the place of a running one."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.recorded_cluster import RECORDING, recorded_cluster

SCRIPT = Path(__file__).parents[2] / "examples" / "cron" / "snapshot-audit-trend"
RUNS = "runs of prod's"
"""What a person may call a folder."""
DAYS = ("2026-11-25", "2026-11-26", "2026-11-27")


def started(
    tmp_path: Path, day: str, server: str, *, seconds: int = 10, **settings: str
) -> subprocess.CompletedProcess[str]:
    """Run the script on a day."""
    clock = tmp_path / "bin" / "date"
    clock.parent.mkdir(exist_ok=True)
    clock.write_text(f"#!/bin/sh\necho {day}T053000Z\n", "utf-8")
    clock.chmod(0o755)
    path = f"{clock.parent}:{Path(sys.executable).parent}:{os.environ['PATH']}"
    return subprocess.run(
        ["sh", str(SCRIPT), server, str(tmp_path / RUNS), "--timeout", str(seconds)],
        env={**os.environ, "PATH": path, **settings},
        capture_output=True,
        encoding="utf-8",
        check=False,
    )


@pytest.mark.long
def test_it_runs_morning_after_morning_and_keeps_the_newest_runs(tmp_path: Path) -> None:
    runs = tmp_path / RUNS
    for day in DAYS:
        with recorded_cluster(RECORDING) as address:
            ran = started(
                tmp_path,
                day,
                address,
                KEEP_DUMPS="1",
                KEEP_AUDITS="2",
                TREND_OPTIONS="--disk-size 500GB",
            )
        assert ran.returncode in {0, 1, 3}, ran.stderr
        assert "Traceback" not in ran.stderr
        summary = json.loads((runs / f"audits/{day}T053000Z/summary.json").read_text("utf-8"))
        assert ran.returncode == summary["exit_code"]
        assert (summary["changes"] is not None) == (day != DAYS[0])
        assert (runs / "trend" / "trend.html").exists()
        assert "Cluster " in (runs / "trend.txt").read_text("utf-8")
    assert [each.name for each in sorted((runs / "dumps").iterdir())] == [
        "2026-11-27T053000Z",
        "2026-11-27T053000Z.txt",
    ]
    kept = [each.name for each in sorted((runs / "audits").iterdir()) if each.is_dir()]
    assert kept == ["2026-11-26T053000Z", "2026-11-27T053000Z"]
    trend = json.loads((runs / "trend" / "trend.json").read_text("utf-8"))
    # Each answered the same: of one instant, which counts once.
    assert len(trend["rows"]) == 1
    assert {each["disk_bytes"] for each in trend["disks"]} == {500_000_000_000}


def test_where_no_cluster_answers_nothing_is_audited_and_nothing_removed(tmp_path: Path) -> None:
    audits = tmp_path / RUNS / "audits"
    for day in DAYS:
        (audits / f"{day}T000000Z").mkdir(parents=True)
    ran = started(tmp_path, "2026-11-28", "127.0.0.1:1", seconds=1, KEEP_AUDITS="1")
    assert ran.returncode == 3, ran.stderr
    assert len(list(audits.iterdir())) == len(DAYS)


PRETENDER = """#!/bin/sh
command=$1
while [ $# -gt 0 ]; do
    [ "$1" = --out ] && out=$2
    [ $command = trend ] && printf '%s\\n' "$1" >> "$ARGUMENTS"
    shift
done
mkdir -p "$out" && touch "$out/snapshot.json" "$out/summary.json"
"""


def test_trend_gets_each_audit_by_its_whole_name(tmp_path: Path) -> None:
    audits = tmp_path / RUNS / "audits"
    for day in DAYS[:2]:
        (audits / f"{day}T053000Z").mkdir(parents=True)
        (audits / f"{day}T053000Z" / "summary.json").touch()
    (audits / "2026-11-24T053000Z").mkdir()
    pretender = tmp_path / "bin" / "groupscope"
    pretender.parent.mkdir()
    pretender.write_text(PRETENDER, "utf-8")
    pretender.chmod(0o755)
    arguments = tmp_path / "arguments"
    ran = started(tmp_path, DAYS[2], "b:1", ARGUMENTS=str(arguments), TREND_OPTIONS="--top 3")
    assert ran.returncode == 0, ran.stderr
    assert arguments.read_text("utf-8").splitlines()[:6] == [
        "trend",
        *(str(audits / f"{day}T053000Z") for day in DAYS),
        "--top",
        "3",
    ]
