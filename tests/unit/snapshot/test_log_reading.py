"""How one partition's log is read while the cluster moves on."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from analytics.snapshot.cluster_connection import NotAnsweredError
from analytics.snapshot.log_extents import FetchBudget, Pace, Reading
from analytics.snapshot.log_folder import LogWriter
from analytics.snapshot.log_reading import LogReader
from schemas.snapshot import Partition
from tests.unit.snapshot.made_batches import batch

TOPIC = "__consumer_offsets"
OUT_OF_RANGE, NOT_LEADER, UNAUTHORIZED, UNAVAILABLE = 1, 6, 29, 5


@dataclass
class MadeCluster:
    """One partition's log on a broker that does as brokers do.

    Attributes:
        batches: Base offset, and how many offsets; a number of records where fewer are left.
        end: The high watermark.
        before: Called before each fetch, with its number from 1: what happens meanwhile.
    """

    batches: list[tuple[int, ...]]
    end: int
    start: int = 0
    leader: int = 1
    epoch: int = 3
    before: Callable[[MadeCluster, int], None] = lambda _cluster, _number: None
    errors: dict[int, int] = field(default_factory=dict)
    fetched: int = 0
    seconds: float = 1

    def ask(self, request: Any, node: int | None = None) -> Any:
        return getattr(self, f"_{request.name}")(request, node)

    def note_brokers(self, _metadata: Any) -> None:
        """Its address does not change."""

    def _MetadataRequest(self, _request: Any, _node: int | None) -> Any:  # noqa: N802
        partition = SimpleNamespace(
            error_code=0, partition_index=0, leader_id=self.leader, leader_epoch=self.epoch,
            replica_nodes=[1, 2], isr_nodes=[1, 2],
        )  # fmt: skip
        topic = SimpleNamespace(
            error_code=0, name=TOPIC, topic_id=None, is_internal=True, partitions=[partition]
        )
        return SimpleNamespace(brokers=[], topics=[topic], cluster_id="c", controller_id=1)

    def _ListOffsetsRequest(self, request: Any, _node: int | None) -> Any:  # noqa: N802
        which = request.topics[0].partitions[0].timestamp
        offset = self.end if which == -1 else self.start
        partition = SimpleNamespace(error_code=0, partition_index=0, offset=offset)
        return SimpleNamespace(topics=[SimpleNamespace(name=TOPIC, partitions=[partition])])

    def _FetchRequest(self, request: Any, node: int | None) -> Any:  # noqa: N802
        self.fetched += 1
        self.before(self, self.fetched)
        (asked,) = request.topics[0].partitions
        code = self.errors.get(self.fetched, 0)
        if not code and node != self.leader:
            code = NOT_LEADER
        if not code and not self.start <= asked.fetch_offset <= self.end:
            code = OUT_OF_RANGE
        records = b"" if code else self._records(asked.fetch_offset, asked.partition_max_bytes)
        partition = SimpleNamespace(
            error_code=code, partition_index=0, high_watermark=self.end, records=records or None
        )
        topic = SimpleNamespace(topic=TOPIC, partitions=[partition])
        return SimpleNamespace(error_code=0, responses=[topic])

    def _records(self, offset: int, size: int) -> bytes:
        """As brokers cut it: the first batch whole."""
        all_of_it = [batch(*each) for each in self.batches if each[0] + each[1] > offset]
        return b"".join(all_of_it)[: max(size, len(all_of_it[0]))] if all_of_it else b""


@pytest.fixture(autouse=True)
def _impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("analytics.snapshot.log_reading._BETWEEN", 0.001)


def read(cluster: MadeCluster, folder: Path, fetch_bytes: int = 100) -> tuple[Reading, bytes]:
    """Read it in small pieces; return what is said and the bytes that are there."""
    partition = Partition(0, 1, 3, [1, 2], [1, 2], cluster.start, cluster.end, None, None)
    folder.mkdir(exist_ok=True)
    reader = LogReader(cluster, Pace(5, fetch_bytes))  # type: ignore[arg-type]
    with LogWriter(folder, TOPIC, 0) as writer:
        reading = reader.read(TOPIC, partition, writer)
    segments = sorted((folder / f"{TOPIC}-0").glob("*.log"))
    return reading, b"".join(each.read_bytes() for each in segments)


class MadeClock:
    """Time that passes only where somebody says so."""

    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


class SlowBudget(FetchBudget):
    """Waits ten seconds after each answer, to keep a pace."""

    def __init__(self, clock: MadeClock) -> None:
        super().__init__()
        self._made = clock

    def keep_pace(self) -> None:
        self._made.now += 10


WHOLE = [(0, 5), (5, 1), (6, 4)]


def bytes_of(batches: list[tuple[int, ...]]) -> bytes:
    return b"".join(batch(*each) for each in batches)


@pytest.mark.parametrize("fetch_bytes", [1, 71, 100, 1 << 20])
def test_a_log_is_there_as_it_was(tmp_path: Path, fetch_bytes: int) -> None:
    reading, content = read(MadeCluster(WHOLE, 10), tmp_path, fetch_bytes)
    assert content == bytes_of(WHOLE)
    assert (reading.next_offset, reading.end, reading.readings) == (10, 10, 1)
    assert (reading.failure, reading.has_gaps, reading.size) == (None, False, len(content))


def test_a_log_that_lacks_nothing_is_read_to_its_end_at_the_beginning(tmp_path: Path) -> None:
    def grow(cluster: MadeCluster, _number: int) -> None:
        cluster.batches.append((cluster.end, 1))
        cluster.end += 1

    reading, content = read(MadeCluster([*WHOLE], 10, before=grow), tmp_path)
    assert content == bytes_of(WHOLE)
    assert (reading.end, reading.next_offset) == (10, 10)


def test_where_records_are_missing_it_is_read_to_its_end_at_that_time(tmp_path: Path) -> None:
    gone = [(0, 5, 2), (6, 4)]

    def grow_once(cluster: MadeCluster, number: int) -> None:
        # What was removed may have gone for this one.
        if number == 1:
            cluster.batches.append((10, 3))
            cluster.end = 13

    reading, content = read(MadeCluster([*gone], 10, before=grow_once), tmp_path)
    assert content == bytes_of([*gone, (10, 3)])
    assert (reading.end, reading.next_offset, reading.has_gaps) == (13, 13, True)


def test_what_is_cleaned_as_fast_as_it_grows_is_given_up(tmp_path: Path) -> None:
    def grow(cluster: MadeCluster, _number: int) -> None:
        cluster.batches.append((cluster.end + 1, 1))
        cluster.end += 2

    reading, _ = read(MadeCluster([(1, 9)], 10, before=grow), tmp_path)
    assert reading.failure == "the cleaner removed what had just been written, time and again"


def test_a_log_whose_end_the_cleaner_emptied_ends_with_an_empty_segment(tmp_path: Path) -> None:
    reading, content = read(MadeCluster(WHOLE, 20), tmp_path)
    assert content == bytes_of(WHOLE)
    assert (reading.next_offset, reading.has_gaps, reading.failure) == (20, True, None)
    names = sorted(each.name for each in (tmp_path / f"{TOPIC}-0").iterdir())
    assert names == [f"{0:020d}.log", f"{20:020d}.log"]


def test_a_log_start_within_a_batch_has_the_batch_whole(tmp_path: Path) -> None:
    reading, content = read(MadeCluster(WHOLE, 10, start=3), tmp_path)
    assert content == bytes_of(WHOLE)
    assert not reading.has_gaps


def test_what_is_deleted_before_it_is_read_is_not_there(tmp_path: Path) -> None:
    def delete(cluster: MadeCluster, number: int) -> None:
        if number == 2:
            cluster.start, cluster.batches = 6, cluster.batches[2:]

    reading, content = read(MadeCluster([*WHOLE], 10, before=delete), tmp_path)
    assert content == bytes_of(WHOLE[2:])
    assert reading.span is not None
    assert (reading.span.start, reading.readings, reading.failure) == (6, 2, None)


def test_after_a_change_of_leader_it_is_read_again_from_its_start(tmp_path: Path) -> None:
    def move(cluster: MadeCluster, number: int) -> None:
        if number == 2:
            # The new leader had lost the last records and took others.
            cluster.leader, cluster.epoch = 2, 4
            cluster.batches = [(0, 5), (5, 5)]

    reading, content = read(MadeCluster([*WHOLE], 10, before=move), tmp_path)
    assert content == bytes_of([(0, 5), (5, 5)])
    assert reading.span is not None
    assert (reading.span.leader, reading.span.epoch, reading.readings) == (2, 4, 2)


def test_an_error_that_passes_is_waited_for_and_another_is_not(tmp_path: Path) -> None:
    passing = MadeCluster(WHOLE, 10, errors={1: UNAVAILABLE, 3: UNAVAILABLE})
    reading, content = read(passing, tmp_path / "passing", 1)
    assert (reading.failure, content) == (None, bytes_of(WHOLE))
    reading, content = read(MadeCluster(WHOLE, 10, errors={2: UNAUTHORIZED}), tmp_path / "not", 1)
    assert (reading.failure, reading.next_offset) == ("TOPIC_AUTHORIZATION_FAILED", 5)
    # What came before it stays.
    assert content == bytes_of(WHOLE[:1])


def test_a_broker_that_falls_silent_is_not_waited_for_again(tmp_path: Path) -> None:
    class Silent(MadeCluster):
        def _FetchRequest(self, _request: Any, _node: int | None) -> Any:  # noqa: N802
            self.fetched += 1
            raise NotAnsweredError("gone", is_passing=True)

    cluster = Silent(WHOLE, 10)
    partition = Partition(0, 1, 3, [1], [1], 0, 10, None, None)
    reader = LogReader(cluster, Pace(0.02))  # type: ignore[arg-type]
    for folder in (tmp_path / "0", tmp_path / "1"):
        asked = cluster.fetched
        folder.mkdir()
        with LogWriter(folder, TOPIC, 0) as writer:
            assert reader.read(TOPIC, partition, writer).failure == "gone"
    assert cluster.fetched == asked


def test_a_partition_of_a_silent_broker_is_read_from_who_leads_it_now(tmp_path: Path) -> None:
    class Silent(MadeCluster):
        def _FetchRequest(self, request: Any, node: int | None) -> Any:  # noqa: N802
            if node == 1:
                raise NotAnsweredError("gone", is_passing=True)
            return super()._FetchRequest(request, node)

    cluster = Silent(WHOLE, 10)
    partition = Partition(0, 1, 3, [1, 2], [1, 2], 0, 10, 10, None)
    reader = LogReader(cluster, Pace(0.02))  # type: ignore[arg-type]
    with LogWriter(_made(tmp_path / "0"), TOPIC, 0) as writer:
        assert reader.read(TOPIC, partition, writer).failure == "gone"
    cluster.leader, cluster.epoch = 2, 4
    with LogWriter(_made(tmp_path / "1"), TOPIC, 0) as writer:
        reading = reader.read(TOPIC, partition, writer)
    assert (reading.failure, reading.next_offset, reading.readings) == (None, 10, 2)


def _made(folder: Path) -> Path:
    folder.mkdir()
    return folder


def test_a_partition_without_a_leader_says_so(tmp_path: Path) -> None:
    partition = Partition(0, None, None, [1], [], None, None, None, "LEADER_NOT_AVAILABLE")
    with LogWriter(tmp_path, TOPIC, 0) as writer:
        reading = LogReader(MadeCluster([], 0), Pace(1)).read(  # type: ignore[arg-type]
            TOPIC, partition, writer
        )
    assert (reading.failure, reading.span) == ("LEADER_NOT_AVAILABLE", None)


@pytest.mark.parametrize("more", [-1, 0, 1])
def test_no_more_is_fetched_of_all_logs_than_is_allowed(tmp_path: Path, more: int) -> None:
    cluster = MadeCluster(WHOLE, 10)
    partition = Partition(0, 1, 3, [1], [1], 0, 10, None, None)
    most = len(bytes_of(WHOLE[:1])) + more
    reader = LogReader(cluster, Pace(1, budget=FetchBudget(most_bytes=most)))  # type: ignore[arg-type]
    readings = []
    for folder in (tmp_path / "0", tmp_path / "1"):
        folder.mkdir()
        with LogWriter(folder, TOPIC, 0) as writer:
            readings.append(reader.read(TOPIC, partition, writer))
    why = f"no more is fetched of all logs than the {most} bytes that are allowed"
    assert [each.failure for each in readings] == [why, why]
    # A batch that is begun comes whole; of the next log nothing is asked for.
    (segment,) = (tmp_path / "0" / f"{TOPIC}-0").glob("*.log")
    assert segment.read_bytes() == bytes_of(WHOLE[:1])
    assert [each.size for each in readings] == [len(bytes_of(WHOLE[:1])), 0]
    assert cluster.fetched == 1


def test_a_limit_that_is_not_reached_changes_nothing(tmp_path: Path) -> None:
    cluster = MadeCluster(WHOLE, 10)
    partition = Partition(0, 1, 3, [1], [1], 0, 10, None, None)
    most = len(bytes_of(WHOLE))
    with LogWriter(tmp_path, TOPIC, 0) as writer:
        reader = LogReader(cluster, Pace(1, budget=FetchBudget(most_bytes=most)))  # type: ignore[arg-type]
        assert reader.read(TOPIC, partition, writer).failure is None
    (segment,) = (tmp_path / f"{TOPIC}-0").glob("*.log")
    assert segment.read_bytes() == bytes_of(WHOLE)


def read_with_a_slow_pace(folder: Path, broker_seconds: float) -> Reading:
    """Read a log whose broker at first has no records yet: five seconds are its time."""
    clock = MadeClock()

    def take_time(_cluster: MadeCluster, _number: int) -> None:
        clock.now += broker_seconds

    late = MadeCluster([*WHOLE], 10, before=take_time, errors=dict.fromkeys((1, 2), UNAVAILABLE))
    partition = Partition(0, 1, 3, [1, 2], [1, 2], 0, 10, None, None)
    pace = Pace(5, 1 << 20, SlowBudget(clock), clock=clock)
    reader = LogReader(late, pace)  # type: ignore[arg-type]
    with LogWriter(folder, TOPIC, 0) as writer:
        return reader.read(TOPIC, partition, writer)


def test_what_is_waited_to_keep_a_pace_is_not_the_brokers_slowness(tmp_path: Path) -> None:
    assert read_with_a_slow_pace(tmp_path, broker_seconds=2).failure is None


def test_a_broker_that_takes_its_time_is_given_up_whatever_the_pace(tmp_path: Path) -> None:
    assert read_with_a_slow_pace(tmp_path, broker_seconds=3).failure == "LEADER_NOT_AVAILABLE"
