"""`snapshot` of a running broker, held against what the same broker has on its disk."""

from __future__ import annotations

import json
import subprocess
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from tests.brokers.asking import Asker
from tests.brokers.broker import Addresses, Broker
from tests.brokers.programs import Programs
from tests.brokers.releases import INTERNAL, Release, broker_settings
from tests.brokers.snapshot_rows import may_be_cleaned, rows_below
from tests.brokers.troupe import Troupe

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from tests.conftest import Groupscope

pytestmark = pytest.mark.maven

RELEASES = ("3.9.2", "4.2.1", "4.4.0")
"""The last before brokers wrote share state, one between, and the newest."""
SEED = 7
"""Its settings have the cleaner come while the clients act."""
SECONDS = 25


@pytest.fixture(scope="module", params=RELEASES)
def release(request: pytest.FixtureRequest) -> Release:
    return Release(request.param)


@pytest.fixture(scope="module")
def taken(
    tmp_path_factory: pytest.TempPathFactory,
    release: Release,
    programs: Programs,
    groupscope: Groupscope,
    spark: SparkSession,  # noqa: ARG001 - one that starts no JVM of its own
) -> tuple[Path, Path]:
    """A snapshot, and the log directory of its broker, which was killed at once."""
    folder = tmp_path_factory.mktemp("broker")
    addresses = Addresses.free()
    settings = broker_settings(release, SEED)
    broker = Broker(programs, addresses, settings, folder / "live")
    broker.format(release)
    broker.start()
    clients = Troupe(folder / "clients.txt")

    def take(out: Path, *options: str | Path) -> None:
        """Take a snapshot; nothing of it contradicts the cluster."""
        ran = groupscope(
            *("snapshot", "--bootstrap-server", addresses.bootstrap, "--out", out),
            *("--fail-on", "info", *options),
        )
        assert ran.returncode == 0, ran.stderr
        assert "  held against the cluster: " in ran.stdout

    try:
        with Asker(programs, addresses.bootstrap) as ask:
            broker.answer(lambda: ask("Metadata", {"topics": None}))
            clients.begin(programs, release, addresses.bootstrap, SEED, SECONDS)
            time.sleep(SECONDS / 2)
            take(folder / "moving")
            clients.wait_until_still(SECONDS)
            take(folder / "resumed", "--resume", folder / "moving")
            clients.kill()
        take(folder / "in-tasks", "--master", "local[2]")
        snapshot = folder / "snapshot"
        take(snapshot)
    finally:
        clients.kill()
        # At once: nothing is to be cleaned any more.
        broker.kill()
    return snapshot, broker.log_dir


def test_decoded_tables_are_those_of_the_disk(
    groupscope: Groupscope, release: Release, taken: tuple[Path, Path], tmp_path: Path
) -> None:
    from schemas.snapshot import read_snapshot  # noqa: PLC0415

    logs = read_snapshot((taken[0] / "snapshot.json").read_bytes(), "snapshot.json").logs
    ends = {(each.topic, each.partition): each.log_end_offset or 0 for each in logs}
    assert all(each.failure is None for each in logs)
    tables = []
    for number, source in enumerate(taken):
        out = tmp_path / str(number)
        ran = groupscope("decode", source, "--out", out, "--quiet")
        assert ran.returncode == 0, ran.stderr
        tables.append(rows_below(out, ends))
    snapshot, disk = tables
    assert snapshot.keys() == disk.keys()
    for name, rows in snapshot.items():
        assert sorted(disk[name].keys() - rows.keys()) == [], name
        gone = [rows[each] for each in rows.keys() - disk[name].keys()]
        assert [each for each in gone if not may_be_cleaned(each, snapshot)] == [], name
    assert snapshot["offset_commit"]
    topics = set(INTERNAL) if release.has_share_groups else set(INTERNAL) - {"__share_group_state"}
    assert ends.keys() == {(topic, each) for topic in topics for each in range(INTERNAL[topic])}


def test_its_settings_are_those_of_the_brokers_file(
    release: Release, taken: tuple[Path, Path]
) -> None:
    from schemas.snapshot import read_snapshot  # noqa: PLC0415

    snapshot = read_snapshot((taken[0] / "snapshot.json").read_bytes(), "snapshot.json")
    (broker,) = snapshot.brokers
    answered = {each.name: each for each in broker.configs or ()}
    written = broker_settings(release, SEED)
    both = written.keys() & answered.keys()
    assert {name: answered[name].value for name in both} == {name: written[name] for name in both}
    assert {answered[name].source for name in both} == {"STATIC_BROKER_CONFIG"}
    assert both >= {"group.initial.rebalance.delay.ms", "offsets.topic.num.partitions"}
    assert answered["offsets.retention.minutes"].value == written.get(
        "offsets.retention.minutes", "10080"
    )
    assert all(each.configs is not None for each in snapshot.topics)


def committed_rows(groupscope: Groupscope, source: Path) -> list[dict[str, Any]]:
    """Rows of `lag` of what was committed.

    Not of what is assigned and never was: members of clients that were killed leave one by one, and
    what is assigned is another thing after each.
    """
    rows = json.loads(groupscope("lag", source, "--format", "json").stdout)["rows"]
    return [each for each in rows if each["committed_offset"] is not None]


def lags_of(groupscope: Groupscope, source: Path) -> dict[tuple[Any, ...], tuple[Any, ...]]:
    """By group and partition, where it is and where the log starts and ends."""
    names = ("committed_offset", "log_start_offset", "log_end_offset")
    return {
        (each["group_id"], each["topic"], each["partition"]): tuple(each[name] for name in names)
        for each in committed_rows(groupscope, source)
        # Of internal topics the disk has records, and no ends for those who read them.
        if each["topic"] not in INTERNAL
    }


def test_lag_is_that_of_the_disk(groupscope: Groupscope, taken: tuple[Path, Path]) -> None:
    snapshot, disk = (lags_of(groupscope, source) for source in taken)
    checkpoint = (taken[1] / "replication-offset-checkpoint").read_text().splitlines()[2:]
    noted = {tuple(line.rsplit(" ", 1)) for line in checkpoint}
    assert snapshot
    assert snapshot.keys() == disk.keys()
    for (group, topic, partition), lag in snapshot.items():
        on_disk = disk[group, topic, partition]
        # A broker that was killed leaves the end of an earlier topic of the name.
        is_earlier = (f"{topic} {partition}", str(on_disk[-1])) in noted and on_disk[-1] > lag[-1]
        assert lag[:2] == on_disk[:2]
        assert is_earlier or lag == on_disk


def committed_of(groupscope: Groupscope, source: Path) -> dict[tuple[Any, ...], Any]:
    """Committed offsets by group and partition."""
    names = ("group_id", "topic", "partition")
    return {
        tuple(each[name] for name in names): each["committed_offset"]
        for each in committed_rows(groupscope, source)
    }


def test_what_was_resumed_says_what_the_whole_says(
    groupscope: Groupscope, taken: tuple[Path, Path]
) -> None:
    from schemas.snapshot import read_snapshot  # noqa: PLC0415

    resumed, moving = (taken[0].parent / each for each in ("resumed", "moving"))
    document = read_snapshot((resumed / "snapshot.json").read_bytes(), "snapshot.json")
    before = read_snapshot((moving / "snapshot.json").read_bytes(), "snapshot.json")
    assert document.resumed_from == before.taken_at
    # The cleaner comes all the time: some are gone on from, and some are not.
    assert any(each.fetched_from is not None for each in document.logs)
    assert not [
        each
        for each in document.logs
        if each.fetched_from is not None and each.why_whole is not None
    ]
    assert committed_of(groupscope, resumed) == committed_of(groupscope, taken[0])


def test_what_tasks_read_says_the_same(groupscope: Groupscope, taken: tuple[Path, Path]) -> None:
    in_tasks = taken[0].parent / "in-tasks"
    assert committed_of(groupscope, in_tasks) == committed_of(groupscope, taken[0])


def test_kafkas_own_tool_reads_its_segments(taken: tuple[Path, Path], programs: Programs) -> None:
    segments = [str(each) for each in sorted(taken[0].glob("*/*.log"))]
    ran = subprocess.run(
        programs.tool("DumpLogSegments", "--deep-iteration", "--files", ",".join(segments)),
        capture_output=True,
        encoding="utf-8",
        check=True,
        timeout=300,
    )
    for segment in segments:
        assert f"Dumping {segment}" in ran.stdout
    assert "isvalid: true" in ran.stdout
    assert "isvalid: false" not in ran.stdout
    assert [each for each in ran.stdout.splitlines() if each.startswith("Found")] == []
