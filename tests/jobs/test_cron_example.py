"""`examples/cron/snapshot-audit-trend`, with a recorded cluster in the place of a running one."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow.parquet as pq
import pytest

from tests.support.recorded_cluster import RECORDING, document, recorded_cluster

if TYPE_CHECKING:
    from tests.conftest import Groupscope

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


def segments_of(dump: Path) -> dict[str, bytes]:
    return {str(each.relative_to(dump)): each.read_bytes() for each in dump.rglob("*.log")}


def tables_of(audit: Path) -> dict[str, list[str]]:
    return {
        str(folder.relative_to(audit)): sorted(
            map(repr, pq.read_table(sorted(folder.glob("*.parquet"))).to_pylist())
        )
        for folder in {path.parent for path in audit.rglob("*.parquet")}
    }


def bytes_of(audit: Path) -> tuple[int, int] | None:
    """How many bytes of logs were kept and decoded; null where no audit was gone on from."""
    manifest: dict[str, Any] = json.loads((audit / "manifest.json").read_text("utf-8"))
    if "resumed" not in manifest:
        return None
    partitions = manifest["resumed"]["partitions"]
    kept, decoded = (
        sum(each[name] for each in partitions) for name in ("bytes_kept", "bytes_decoded")
    )
    return kept, decoded


@pytest.mark.long
def test_it_runs_morning_after_morning_and_keeps_the_newest_runs(
    tmp_path: Path, groupscope: Groupscope
) -> None:
    runs = tmp_path / RUNS
    dumps, audits = (
        [runs / name / f"{day}T053000Z" for day in DAYS] for name in ("dumps", "audits")
    )
    segments: list[dict[str, bytes]] = []
    for number, day in enumerate(DAYS):
        if number == 2:
            # What lies in the last dump's place is no snapshot any more.
            (dumps[1] / "snapshot.json").write_text("{}", "utf-8")
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
        summary = json.loads((audits[number] / "summary.json").read_text("utf-8"))
        assert ran.returncode == summary["exit_code"]
        assert (summary["changes"] is not None) == (number > 0)
        assert (runs / "trend" / "trend.html").exists()
        assert "Cluster " in (runs / "trend.txt").read_text("utf-8")
        segments.append(segments_of(dumps[number]))
        # The dump that was gone on from is removed all the same.
        assert [each.name for each in sorted((runs / "dumps").iterdir())] == [
            f"{day}T053000Z",
            f"{day}T053000Z.txt",
        ]
        is_resumed = document(dumps[number]).resumed_from is not None
        assert is_resumed == (number == 1)
        note = f"{dumps[number - 1]} cannot be resumed: the snapshot is taken whole"
        assert (note in ran.stderr) == (number == 2)
        if number == 1:
            whole = tmp_path / "whole"
            since = ("--since", audits[0])
            groupscope("audit", f"cluster={dumps[1]}", "--out", whole, "--quiet", *since)
            assert tables_of(audits[1]) == tables_of(whole)
    assert segments[0] == segments[1] == segments[2]
    size = sum(map(len, segments[0].values()))
    assert [bytes_of(each) for each in audits[1:]] == [(size, 0), (size, 0)]
    kept = [each.name for each in sorted((runs / "audits").iterdir()) if each.is_dir()]
    assert kept == [each.name for each in audits[1:]]
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
printf '%s\\n' "$command" >> "$ARGUMENTS"
while [ $# -gt 0 ]; do
    [ "$1" = --out ] && out=$2
    [ "$1" = --resume ] && printf '%s\\n' "$2" >> "$ARGUMENTS" && [ -n "${REFUSES:-}" ] && exit 2
    [ $command = trend ] && printf '%s\\n' "$1" >> "$ARGUMENTS"
    shift
done
mkdir -p "$out" && touch "$out/snapshot.json" "$out/summary.json"
printf '{\\n  "refusal": %s,\\n}\\n' "${REFUSAL:-null}" > "$out/manifest.json"
"""


def pretended(
    tmp_path: Path, **settings: str
) -> tuple[subprocess.CompletedProcess[str], list[str]]:
    """Run the script on the third day with a pretender in groupscope's place: what it was given."""
    pretender = tmp_path / "bin" / "groupscope"
    pretender.parent.mkdir()
    pretender.write_text(PRETENDER, "utf-8")
    pretender.chmod(0o755)
    arguments = tmp_path / "arguments"
    ran = started(tmp_path, DAYS[2], "b:1", ARGUMENTS=str(arguments), **settings)
    return ran, arguments.read_text("utf-8").splitlines()


@pytest.fixture
def before(tmp_path: Path) -> tuple[Path, Path]:
    """Dump and audit of the second day; there is an audit of the first, and one that failed."""
    runs = tmp_path / RUNS
    dump, audit = (runs / name / f"{DAYS[1]}T053000Z" for name in ("dumps", "audits"))
    first = runs / "audits" / f"{DAYS[0]}T053000Z"
    for each in (dump, audit, first, runs / "audits" / "2026-11-24T053000Z"):
        each.mkdir(parents=True)
    (dump / "snapshot.json").touch()
    for each in (audit, first):
        (each / "summary.json").touch()
    return dump, audit


def test_trend_gets_each_audit_by_its_whole_name(tmp_path: Path, before: tuple[Path, Path]) -> None:
    audits = before[1].parent
    ran, arguments = pretended(tmp_path, TREND_OPTIONS="--top 3")
    assert ran.returncode == 0, ran.stderr
    assert arguments[arguments.index("trend") + 1 :][:6] == [
        "trend",
        *(str(audits / f"{day}T053000Z") for day in DAYS),
        "--top",
        "3",
    ]


def test_snapshot_and_audit_go_on_from_those_before(
    tmp_path: Path, before: tuple[Path, Path]
) -> None:
    dump, audit = map(str, before)
    ran, arguments = pretended(tmp_path)
    assert arguments[:4] == ["snapshot", dump, "audit", audit]
    assert (ran.returncode, ran.stderr) == (0, "")


def test_what_is_refused_is_done_anew_and_is_named(
    tmp_path: Path, before: tuple[Path, Path]
) -> None:
    dump, audit = map(str, before)
    ran, arguments = pretended(tmp_path, REFUSES="yes")
    assert arguments[:6] == ["snapshot", dump, "snapshot", "audit", audit, "audit"]
    assert ran.returncode == 0
    assert ran.stderr.splitlines() == [
        f"snapshot-audit-trend: {dump} cannot be resumed: the snapshot is taken whole",
        f"snapshot-audit-trend: {audit} cannot be resumed: all of the dump is decoded",
    ]


def test_an_audit_that_kept_nothing_of_the_last_one_says_why(
    tmp_path: Path, before: tuple[Path, Path]
) -> None:
    ran, _ = pretended(tmp_path, REFUSAL='"groupscope 0.0.9 wrote it"')
    assert ran.returncode == 0
    assert ran.stderr.splitlines() == [
        f"snapshot-audit-trend: nothing that {before[1]} decoded is kept: groupscope 0.0.9 wrote it"
    ]


@pytest.mark.usefixtures("before")
def test_all_is_done_anew_where_that_is_asked_for(tmp_path: Path) -> None:
    ran, arguments = pretended(tmp_path, RESUME="no")
    assert arguments[:3] == ["snapshot", "audit", "trend"]
    assert (ran.returncode, ran.stderr) == (0, "")
