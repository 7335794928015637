"""How logs are handed out to tasks, and which attempts of them count."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from msgspec import structs

from analytics.errors import ClusterUnfitError, ClusterUnreachableError
from analytics.snapshot import reading_tasks, taking
from analytics.snapshot.cluster_connection import ClusterConnection
from analytics.snapshot.log_extents import FETCH_BYTES, ReadLog, WantedLog
from analytics.snapshot.log_reading import LogReader
from analytics.snapshot.reading_tasks import TaskReader
from analytics.snapshot.sealed_settings import SealedSettings
from analytics.snapshot.taking import Limits
from schemas.names import COORDINATOR_TOPICS
from tests.support.recorded_cluster import connected_to_recording, files_of

BEGUN = datetime(2026, 11, 27, tzinfo=UTC)
Attempts = Callable[[int, Callable[[int], Any]], Sequence[Any]]


class Session:
    """A session whose tasks run here, as each test has it.

    Attributes:
        attempts: Runs a function for each number.
        work: What tasks were given.
        is_cancelled: Its jobs were.
    """

    def __init__(self) -> None:
        self.attempts: Attempts = lambda count, run: [run(each) for each in range(count)]
        self.work: Any = None
        self.is_cancelled = False
        self.sparkContext = SimpleNamespace(
            setLocalProperty=lambda *_: None, cancelAllJobs=self.cancel
        )

    def cancel(self) -> None:
        self.is_cancelled = True

    def run_tasks(self, count: int, run: Any) -> Sequence[Any]:
        (self.work,) = run.args
        return self.attempts(count, run)


@pytest.fixture
def session(monkeypatch: pytest.MonkeyPatch) -> Session:
    monkeypatch.setattr(reading_tasks, "run_tasks", Session.run_tasks)
    monkeypatch.setattr(SealedSettings, "opened", lambda sealed: sealed.public)
    return Session()


@pytest.fixture
def cluster() -> Iterator[ClusterConnection]:
    with connected_to_recording() as connection:
        yield connection


@pytest.fixture
def wanted(cluster: ClusterConnection) -> list[WantedLog]:
    topics, _ = taking._described(cluster)
    return [
        WantedLog(name, each, lambda: None)
        for name in COORDINATOR_TOPICS
        for each in topics.by_name[name].partitions
    ]


def clock() -> datetime:
    return BEGUN


def reader_in(session: Session, cluster: ClusterConnection, **limits: Any) -> TaskReader:
    spark: Any = session
    reader = Limits(**limits).reader(cluster, lambda *pace: TaskReader(spark, *pace))
    assert isinstance(reader, TaskReader)
    return reader


def read(reader: LogReader, wanted: list[WantedLog], folder: Path) -> list[ReadLog]:
    folder.mkdir()
    return list(reader.read_all(wanted, folder, clock))


@pytest.fixture
def alone(cluster: ClusterConnection, wanted: list[WantedLog], tmp_path: Path) -> Path:
    """What one process reads."""
    read(Limits().reader(cluster), wanted, tmp_path / "alone")
    return tmp_path / "alone"


def test_attempts_that_failed_or_are_repeated_change_nothing(
    session: Session,
    cluster: ClusterConnection,
    wanted: list[WantedLog],
    alone: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    real = LogReader.read_into

    def dies_midway(*arguments: Any) -> ReadLog:
        real(*arguments)
        raise KeyError

    def attempts(count: int, run: Callable[[int], Any]) -> list[Any]:
        found = []
        for number in range(count):
            monkeypatch.setattr(LogReader, "read_into", dies_midway)
            with pytest.raises(KeyError):
                run(number)
            monkeypatch.setattr(LogReader, "read_into", real)
            counts, _too_late = run(number), run(number)
            found.append(counts)
        return found

    session.attempts = attempts
    logs = read(reader_in(session, cluster), wanted, tmp_path / "out")
    assert files_of(tmp_path / "out") == files_of(alone)
    assert {each.name for each in (tmp_path / "out").iterdir()} == {
        f"{each.topic}-{each.partition.partition}" for each in wanted
    }
    places = [(each.topic, each.partition.partition) for each in wanted]
    spans = [each.reading.span for each in logs]
    assert [(each.topic, each.partition) for each in spans if each] == places


def test_a_log_that_fails_is_named_and_others_are_read(
    session: Session, cluster: ClusterConnection, wanted: list[WantedLog], tmp_path: Path
) -> None:
    (first, *others) = wanted
    partition = structs.replace(first.partition, leader=None, error="LEADER_NOT_AVAILABLE")
    gone = first._replace(partition=partition)
    logs = read(reader_in(session, cluster), [gone, *others], tmp_path / "out")
    assert logs[0].reading.failure == "LEADER_NOT_AVAILABLE"
    assert not any(each.reading.failure for each in logs[1:])


def test_each_task_has_its_part_of_the_rate_and_what_tasks_fetch_counts_here(
    session: Session, cluster: ClusterConnection, wanted: list[WantedLog], tmp_path: Path
) -> None:
    reader = reader_in(session, cluster, bytes_a_second=4 * FETCH_BYTES, parallel=4)
    logs = read(reader, wanted, tmp_path / "out")
    assert len(session.work.parts) == 4
    assert (session.work.bytes_a_second, session.work.fetch_bytes) == (FETCH_BYTES, FETCH_BYTES)
    assert reader._pace.budget.answer_bytes >= sum(each.reading.size for each in logs) > 0


def test_without_a_rate_none_is_kept_to_and_no_task_is_without_a_log(
    session: Session, cluster: ClusterConnection, wanted: list[WantedLog], tmp_path: Path
) -> None:
    read(reader_in(session, cluster, parallel=32), wanted, tmp_path / "out")
    assert [len(each) for each in session.work.parts] == [1] * len(wanted)
    assert (session.work.bytes_a_second, session.work.fetch_bytes) == (None, FETCH_BYTES)


def test_parts_have_about_as_much_to_read() -> None:
    assert reading_tasks._parts([50, 9, 40, 10, 1], 2) == [[0, 1], [2, 3, 4]]
    assert reading_tasks._parts([0, 0, 0, 0], 2) == [[0, 2], [1, 3]]
    assert reading_tasks._parts([], 4) == []


@pytest.mark.parametrize("hours", [-5, 5])
def test_clocks_of_other_machines_are_not_believed(
    session: Session,
    cluster: ClusterConnection,
    wanted: list[WantedLog],
    tmp_path: Path,
    hours: int,
) -> None:
    def attempts(count: int, run: Callable[[int], Any]) -> list[Any]:
        object.__setattr__(session.work, "clock", lambda: BEGUN + timedelta(hours=hours))
        return [run(each) for each in range(count)]

    session.attempts = attempts
    logs = read(reader_in(session, cluster), wanted, tmp_path / "out")
    assert {each.read_at for each in logs} == {BEGUN}


def test_where_tasks_do_not_reach_the_cluster_it_is_said_and_nothing_is_left(
    session: Session, cluster: ClusterConnection, wanted: list[WantedLog], tmp_path: Path
) -> None:
    reader = reader_in(session, cluster)
    reader._pace = replace(reader._pace, seconds=0.3)
    cluster.bootstrap = "127.0.0.1:1"
    with pytest.raises(ClusterUnreachableError, match=r"127\.0\.0\.1:1: .*where executors run\)$"):
        read(reader, wanted, tmp_path / "out")
    assert session.is_cancelled
    assert [*(tmp_path / "out").iterdir()] == []


def test_what_was_written_and_is_not_seen_is_no_snapshot(
    session: Session, cluster: ClusterConnection, wanted: list[WantedLog], tmp_path: Path
) -> None:
    def elsewhere(count: int, run: Callable[[int], Any]) -> list[Any]:
        found = [run(each) for each in range(count)]
        for each in found:
            shutil.rmtree(each.folder)
        return found

    session.attempts = elsewhere
    with pytest.raises(ClusterUnfitError, match=r"is not seen here .*that all machines share"):
        read(reader_in(session, cluster), wanted, tmp_path / "out")


def test_what_is_seen_in_part_is_no_snapshot(
    session: Session, cluster: ClusterConnection, wanted: list[WantedLog], tmp_path: Path
) -> None:
    def cut(count: int, run: Callable[[int], Any]) -> list[Any]:
        found = [run(each) for each in range(count)]
        segment = max(found[0].folder.rglob("*.log"), key=lambda each: each.stat().st_size)
        segment.write_bytes(segment.read_bytes()[:-1])
        return found

    session.attempts = cut
    with pytest.raises(ClusterUnfitError, match=r"of \d+ bytes \d+ are seen here"):
        read(reader_in(session, cluster), wanted, tmp_path / "out")
