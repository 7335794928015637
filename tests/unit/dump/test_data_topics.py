"""Data topics: where their logs start and end, looked up without reading them."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from analytics.dump.copies.plan import next_offset
from analytics.dump.files import data_topics
from analytics.dump.files.data_topics import DataOffsets, DataTopic, data_offsets, end_of
from analytics.dump.files.inputs import recognize
from analytics.dump.files.log_dirs import read_copies
from analytics.dump.files.model import Copy, SegmentFile
from tests.support.batches import Header, batch, record
from tests.support.log_dirs import LogDir, written


def copies_of(path: Path) -> list[Copy]:
    return read_copies(recognize([str(path)]).disks, next_offset, [])


def offsets_of(path: Path) -> DataOffsets:
    (partition,) = copies_of(path)[0].data_partitions
    return data_offsets(partition)


@pytest.fixture
def disk(tmp_path: Path) -> LogDir:
    return LogDir.create(tmp_path / "b")


def test_the_end_is_read_from_the_last_batch(disk: LogDir) -> None:
    disk.partition("orders-3", {4: [written(4, 5)], 9: [written(9, 5)]}, topic_id="A" * 22)
    found = offsets_of(disk.path)
    assert found == DataOffsets("orders", 3, "b", "A" * 22, 4, 14, is_exact=True)


def test_the_start_is_the_checkpointed_one(disk: LogDir) -> None:
    disk.partition("orders-3", {4: [written(4, 5)]})
    disk.checkpoint("log-start-offset-checkpoint", {"orders-3": 6})
    assert offsets_of(disk.path).log_start_offset == 6


@pytest.mark.parametrize(
    ("epoch_start", "checkpointed", "start"),
    [(4, None, 4), (6, None, 4), (0, None, None), (0, 5, 5), (3, 4, 4)],
)
def test_where_an_earlier_epoch_shows_that_files_are_missing_the_start_is_not_known(
    disk: LogDir, epoch_start: int, checkpointed: int | None, start: int | None
) -> None:
    disk.partition("orders-3", {4: [written(4, 5)]}, [(0, epoch_start)])
    if checkpointed is not None:
        disk.checkpoint("log-start-offset-checkpoint", {"orders-3": checkpointed})
    assert offsets_of(disk.path).log_start_offset == start


def test_without_its_newest_file_the_high_watermark_is_a_lower_bound(disk: LogDir) -> None:
    folder = disk.partition("orders-3", {0: []}, [(0, 0)])
    (folder / f"{0:020d}.log").unlink()
    disk.checkpoint("replication-offset-checkpoint", {"orders-3": 60})
    found = offsets_of(disk.path)
    assert (found.log_end_offset, found.is_exact) == (60, False)


@pytest.mark.parametrize(("high_watermark", "is_exact"), [(9, True), (14, True), (211, False)])
def test_an_end_before_the_high_watermark_is_a_lower_bound(
    disk: LogDir, high_watermark: int, is_exact: bool
) -> None:
    disk.partition("orders-3", {9: [written(9, 5)]})
    disk.checkpoint("replication-offset-checkpoint", {"orders-3": high_watermark})
    found = offsets_of(disk.path)
    assert (found.log_end_offset, found.is_exact) == (14, is_exact)


def test_an_empty_file_ends_where_it_begins(disk: LogDir) -> None:
    disk.partition("orders-3", {40: []})
    found = offsets_of(disk.path)
    assert (found.log_start_offset, found.log_end_offset, found.is_exact) == (40, 40, True)


def large(tmp_path: Path, end: bytes = b"") -> SegmentFile:
    decoy = b"\0\0\0\0\0\0\0\5\0\0\0\x40\0\0\0\0\2" * 20
    batches = [
        batch(Header(2 * number, 1, 2), record(0, b"k", decoy) + record(1, b"k", bytes(300)))
        for number in range(400)
    ]
    path = tmp_path / f"{0:020d}.log"
    path.write_bytes(b"".join(batches) + end)
    return SegmentFile(str(path), path.name, 0, path.stat().st_size)


def test_of_a_large_file_the_end_alone_is_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(data_topics, "_WALKED_WHOLE", 0)
    monkeypatch.setattr(data_topics, "_TAIL_BYTES", 20_000)
    monkeypatch.setattr(data_topics, "walk_segment", lambda *_: pytest.fail("walked"))
    assert end_of(large(tmp_path)) == 800


def test_where_the_end_shows_no_batch_the_file_is_walked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(data_topics, "_WALKED_WHOLE", 0)
    monkeypatch.setattr(data_topics, "_TAIL_BYTES", 20_000)
    assert end_of(large(tmp_path, bytes(50_000))) == 800


def test_topics_by_name_and_id(failover_dump: Path, disk: LogDir) -> None:
    found = data_topics.data_topics(copies_of(failover_dump))
    assert [(each.topic, len(each.partitions)) for each in found] == [
        ("invoices", 3),
        ("label-prints", 2),
        ("parcels", 6),
        ("pickup-jobs", 4),
        ("tracking-events", 4),
        ("vehicle-pings", 3),
    ]
    disk.partition("orders-0", {0: []}, topic_id="A" * 22)
    disk.partition("orders-1", {0: []})
    assert data_topics.data_topics(copies_of(disk.path)) == [
        DataTopic("orders", None, (1,)),
        DataTopic("orders", "A" * 22, (0,)),
    ]


def test_a_real_dumps_ends_are_what_the_broker_said(repository: Path) -> None:
    about = json.loads(
        (repository / "tests/data/dumps/kafka-4.3.1-failover/about.json").read_text()
    )
    copies = copies_of(repository / "examples" / "kafka-4.3.1-failover")
    ends = {
        (offsets.copy, f"{offsets.topic}-{offsets.partition}"): offsets.log_end_offset
        for copy in copies
        for each in copy.data_partitions
        if (offsets := data_offsets(each)).is_exact
    }
    for each in about["data_partitions_that_diverged"]:
        assert ends["broker-1", each["partition"]] == each["dead_end"]
        assert ends[f"broker-{each['survivor']}", each["partition"]] == each["survivor_end"]
