"""When data topics' logs were written: by time indexes as Kafka writes them, and last batches."""

from __future__ import annotations

import struct
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from analytics.dump.copies.plan import next_offset
from analytics.dump.files.data_logs import data_segments_and_times, read_time_index
from analytics.dump.files.inputs import recognize
from analytics.dump.files.log_dirs import read_copies
from analytics.epoch_times import LAST_MS
from tests.support.batches import Header, batch, record
from tests.support.log_dirs import LogDir

START = 1_700_000_000_000
APPEND_TIME = 8
"""The bit of a batch's attributes that says whose clock its times are by."""


def index(*entries: tuple[int, int], length: int | None = None) -> bytes:
    """Entries as `TimeIndex` writes them, and the zeros of a file that is still written."""
    data = b"".join(struct.pack(">qi", at, relative) for at, relative in entries)
    return data + bytes((length or len(data)) - len(data))


def at(ms: int) -> datetime:
    return datetime.fromtimestamp(START / 1000, UTC) + timedelta(milliseconds=ms)


def written(base: int, count: int, ms: int, attributes: int = 0) -> bytes:
    header = Header(base, count - 1, count, base_timestamp=START + ms, codec=attributes)
    return batch(header, b"".join(record(each, b"k", b"v") for each in range(count)))


def found_in(path: Path) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    segments, times = data_segments_and_times(
        read_copies(recognize([str(path)]).disks, next_offset, [])
    )
    return segments.to_pylist(), times.to_pylist()


@pytest.fixture
def disk(tmp_path: Path) -> LogDir:
    return LogDir.create(tmp_path / "b")


def test_entries_of_a_closed_index_are_read_and_its_file_is_not_opened(disk: LogDir) -> None:
    folder = disk.partition("orders-3", {0: [b"no batch at all"], 50: [written(50, 2, 900)]})
    (folder / f"{0:020d}.timeindex").write_bytes(index((START + 10, 4), (START + 800, 49)))
    segments, times = found_in(disk.path)

    assert [(each["timestamp"], each["offset"]) for each in times] == [
        *((at(10), 4), (at(800), 49)),
        (at(900), 51),
    ]
    assert [(each["base_offset"], each["largest_timestamp"]) for each in segments] == [
        *((0, at(800)), (50, at(900))),
    ]
    # The file that is written may hold a newer record than its last batch.
    assert [each["is_largest"] for each in segments] == [True, False]
    assert {each["is_append_time"] for each in times} == {False}


def test_by_the_brokers_clock_the_last_batch_is_the_newest(disk: LogDir) -> None:
    batches = [written(0, 3, 5, APPEND_TIME), written(3, 3, 70, APPEND_TIME)]
    disk.partition("orders-0", {0: batches})
    segments, times = found_in(disk.path)

    assert [(each["largest_timestamp"], each["is_largest"]) for each in segments] == [
        (at(70), True)
    ]
    assert [(each["offset"], each["is_append_time"]) for each in times] == [(5, True)]


def test_where_neither_index_nor_batch_tells_nothing_is_known(disk: LogDir) -> None:
    disk.partition("orders-0", {0: [b"x" * 100], 7: []})
    segments, times = found_in(disk.path)

    assert [each["largest_timestamp"] for each in segments] == [None, None]
    assert [each["size_bytes"] for each in segments] == [100, 0]
    assert times == []


def test_zeros_at_the_end_are_no_entries_and_a_long_index_is_thinned(tmp_path: Path) -> None:
    path = tmp_path / "0.timeindex"
    count = 30_000
    entries = [(START + 2 * each, 5 * each) for each in range(count)]
    path.write_bytes(index(*entries, length=10 << 20))
    found = read_time_index(str(path), 1000)

    assert len(found.offsets) == 128
    assert (found.timestamps[0], found.offsets[0]) == (START, 1000)
    assert (found.timestamps[-1], found.offsets[-1]) == (
        START + 2 * (count - 1),
        1000 + 5 * (count - 1),
    )


@pytest.mark.parametrize("far", [LAST_MS + 1, 10**16, 2**62, 2**63 - 1 - START])
def test_a_time_that_no_calendar_has_is_none_in_an_index_and_in_a_batch(
    far: int, disk: LogDir
) -> None:
    folder = disk.partition("orders-3", {0: [b""], 50: [written(50, 2, far)]})
    (folder / f"{0:020d}.timeindex").write_bytes(index((START, 4), (START + far, 49)))
    segments, times = found_in(disk.path)

    assert [(each["timestamp"], each["offset"]) for each in times] == [(at(0), 4)]
    assert [each["largest_timestamp"] for each in segments] == [at(0), None]


def test_an_index_that_has_no_entry_yet_tells_nothing(tmp_path: Path) -> None:
    for content in (b"", bytes(12), bytes(10 << 20), b"short"):
        path = tmp_path / "0.timeindex"
        path.write_bytes(content)
        assert len(read_time_index(str(path), 0).offsets) == 0


@given(
    steps=st.lists(st.tuples(st.integers(1, 50), st.integers(1, 50)), max_size=20),
    zeros=st.integers(0, 5),
    broken=st.one_of(st.none(), st.integers(0, 19)),
)
def test_what_does_not_ascend_ends_an_index(
    steps: list[tuple[int, int]],
    zeros: int,
    broken: int | None,
    tmp_path_factory: pytest.TempPathFactory,
) -> None:
    entries, now, offset = [], START, 0
    for later, further in steps:
        now, offset = now + later, offset + further
        entries.append((now, offset))
    expected = list(entries)
    if broken is not None and 0 < broken < len(entries):
        entries[broken] = (entries[broken - 1][0] - 1, entries[broken][1])
        expected = entries[:broken]
    path = tmp_path_factory.mktemp("index") / "0.timeindex"
    path.write_bytes(index(*entries) + bytes(12 * zeros))
    found = read_time_index(str(path), 0)

    assert list(zip(found.timestamps.tolist(), found.offsets.tolist(), strict=True)) == expected
