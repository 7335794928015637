"""Reading a segment: slices, chunks, what a summary says, and files that are not as they seem."""

from __future__ import annotations

import hashlib
import subprocess
import sys
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from analytics.dump.batches.batch_bytes import DamageReason
from analytics.dump.batches.log_bounds import LogSense
from analytics.dump.records.segment_reader import ReadOptions, read_segment
from analytics.errors import InputUnreadableError, ReadFailedError
from tests.support.segments import (
    GZIP,
    NOW,
    ZSTD,
    Header,
    Made,
    batch,
    joined,
    messages,
    positions,
    random_segment,
    read_back,
    records,
)

MADE = random_segment(7, 40)
DATA = joined(MADE)
RECORDS = [record for each in MADE for record in each.records]


@pytest.fixture
def segment(tmp_path: Path) -> Path:
    path = tmp_path / "00000000000000000000.log"
    path.write_bytes(DATA)
    return path


def test_a_path_and_an_open_file_give_the_same(segment: Path) -> None:
    with segment.open("rb") as file:
        opened = read_back(file)
        assert not file.closed

    assert read_back(segment).records == read_back(str(segment)).records == opened.records
    assert opened.records == RECORDS


@pytest.mark.parametrize("chunk_bytes", [1, 100, 1000, 1 << 20])
def test_the_size_of_chunks_changes_nothing(chunk_bytes: int) -> None:
    read = read_back(DATA, ReadOptions(chunk_bytes=chunk_bytes))

    assert read.records == RECORDS
    assert [each["position"] for each in read.batches] == positions(MADE)[:-1]


def test_slices_that_meet_at_batches_give_the_whole_together() -> None:
    edges = positions(MADE)
    cuts = [edges[0], edges[9], edges[17], edges[-1]]
    parts = [
        read_back(DATA, ReadOptions(from_position=start, to_position=stop))
        for start, stop in pairwise(cuts)
    ]

    assert [record for part in parts for record in part.records] == RECORDS
    assert [part.summary.bytes_read for part in parts if part.summary] == [
        stop - start for start, stop in pairwise(cuts)
    ]


@pytest.mark.parametrize(("start", "stop"), [(10**9, 10**9 + 5), (0, len(DATA) + 1)])
def test_a_file_that_ends_before_what_was_planned_is_an_error(start: int, stop: int) -> None:
    options = ReadOptions(from_position=start, to_position=stop)
    with pytest.raises(ReadFailedError, match=f"beyond byte {len(DATA)}: it had {stop} bytes"):
        read_back(DATA, options)


def test_a_slice_that_begins_amid_a_batch_goes_on_at_the_next() -> None:
    read = read_back(DATA, ReadOptions(from_position=5))

    assert read.records == RECORDS[len(MADE[0].records) :]
    assert read.summary
    assert read.summary.reconciles


def test_the_summary_counts_what_was_there() -> None:
    made = [
        *messages(records(0, 2), 0),
        batch(records(2, 5), Header(codec=GZIP)),
        Made(b"noise" * 20),
        batch(records(7, 3), Header(codec=ZSTD)),
    ]

    summary = read_back(joined([*made, Made(bytes(500))])).summary

    assert summary
    assert summary.bytes_read == len(joined(made)) + 500
    assert summary.bytes_in_batches == len(joined(made)) - 100
    assert (summary.bytes_damaged, summary.bytes_trailing) == (100, 500)
    assert summary.tail is not None
    assert summary.tail.kind == "preallocated_tail"
    assert (summary.batches, summary.records, summary.records_lost) == (4, 10, 0)
    assert summary.codecs == {0: 2, 1: 1, 4: 1}
    assert summary.magics == {0: 2, 2: 2}
    assert summary.damages == {DamageReason.GARBAGE_BETWEEN_BATCHES: 1}
    assert (summary.first_offset, summary.end_offset) == (0, 10)
    assert (summary.min_timestamp, summary.max_timestamp) == (NOW, NOW + 4)


def test_the_digest_is_that_of_the_whole_file(segment: Path) -> None:
    options = ReadOptions(to_position=positions(MADE)[3], digest=True)

    summary = read_back(segment, options).summary

    assert summary
    assert summary.sha256 == hashlib.sha256(DATA).hexdigest()


def test_only_the_first_slice_of_a_file_takes_its_digest(segment: Path) -> None:
    options = ReadOptions(from_position=positions(MADE)[3], digest=True)

    summary = read_back(segment, options).summary

    assert summary
    assert summary.sha256 is None


def test_damages_come_without_their_bytes_where_nobody_wants_them() -> None:
    read = read_back(b"noise" * 20 + DATA, ReadOptions(keep_content=False))

    assert [(each.size, each.content) for each in read.damages] == [(100, b"")]


def test_many_large_damages_come_in_several_chunks() -> None:
    noise = b"\x11" * (1 << 20)
    parts = [part for n in range(8) for part in (batch(records(n, 1)).data, noise)]

    read = read_back(b"".join(parts), ReadOptions(chunk_bytes=1 << 19))

    assert [each.offset for each in read.records] == list(range(8))
    assert [len(each.content) for each in read.damages] == [1 << 20] * 8
    assert read.chunks >= 4


def test_an_empty_file_holds_nothing() -> None:
    read = read_back(b"")

    assert not read.records
    assert read.summary
    assert (read.summary.bytes_read, read.summary.tail) == (0, None)


class _Shrinking:
    """A file that a broker cuts off after it was opened."""

    def __init__(self, data: bytes, kept: int) -> None:
        self._data, self._kept, self._at = data, kept, 0

    def seek(self, position: int, whence: int = 0) -> int:
        self._at = len(self._data) if whence else position
        return self._at

    def read(self, size: int) -> bytes:
        return self._data[: self._kept][self._at : self._at + size]


def test_a_file_that_shrinks_while_it_is_read_is_an_error_and_no_end_of_the_log() -> None:
    edges = positions(MADE)
    file: Any = _Shrinking(DATA, edges[5])

    with pytest.raises(ReadFailedError, match=f"it had {len(DATA)} bytes when it was listed"):
        read_back(file)


def test_a_file_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(InputUnreadableError, match=r"gone\.log"):
        list(read_segment(tmp_path / "gone.log"))


def test_a_reader_can_be_read_again() -> None:
    import io  # noqa: PLC0415

    reader = read_segment(io.BytesIO(DATA), ReadOptions(sense=LogSense(0)))

    assert [len(chunk.records) for chunk in reader] == [len(chunk.records) for chunk in reader]
    assert reader.summary.records == len(RECORDS)


def test_the_reader_starts_without_the_large_libraries() -> None:
    program = (
        "import sys, analytics.dump.records.segment_reader\n"
        "print([name for name in ('pyarrow', 'pandas', 'pyspark') if name in sys.modules])"
    )

    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )

    assert done.stdout.strip() == "[]"
