"""What a run sums up of a segment's batches is what it read, whatever becomes of the file."""

from __future__ import annotations

from hashlib import sha256
from pathlib import Path

import pytest

from analytics.dump.records.segment_reader import ReadOptions, read_segment
from tests.brokers.batches import batches_of

LOG = (
    Path(__file__).resolve().parents[2]
    / "data/dumps/kafka-3.9.2-classic/broker-1/__consumer_offsets-10"
)


@pytest.fixture
def segment(tmp_path: Path) -> tuple[bytes, list[int], Path]:
    """The bytes of a segment, where its batches end, and a copy of the file."""
    batches = batches_of(LOG)
    content = batches[0].segment.read_bytes()
    copy = tmp_path / batches[0].segment.name
    copy.write_bytes(content)
    return content, [each.end for each in batches if each.segment == batches[0].segment], copy


@pytest.mark.parametrize("tail", [b"", b"half a batch"])
@pytest.mark.parametrize("first", [0, 2])
def test_it_is_of_the_bytes_to_the_end_of_the_last_batch(
    segment: tuple[bytes, list[int], Path], tail: bytes, first: int
) -> None:
    content, ends, file = segment
    file.write_bytes(content + tail)
    start = ends[first - 1] if first else 0
    reader = read_segment(str(file), ReadOptions(from_position=start, digest=True))
    list(reader)
    digest = sha256(content[start : ends[-1]]).hexdigest()
    assert reader.summary.sha256_of_batches == digest
    assert reader.summary.sha256 == (None if first else sha256(content + tail).hexdigest())


@pytest.mark.parametrize("tail", [b"", b"half a batch"])
def test_of_a_file_that_is_written_anew_meanwhile_it_is_of_what_was_there(
    segment: tuple[bytes, list[int], Path], tail: bytes
) -> None:
    content, ends, file = segment
    file.write_bytes(content + tail)
    chunks = read_segment(str(file), ReadOptions(digest=True, chunk_bytes=64))
    reading = iter(chunks)
    next(reading)
    # As the cleaner puts another file in its place, and as a follower goes on behind a cut.
    changed = content[: ends[1]] + bytes(len(content) - ends[1])
    with file.open("r+b") as same:
        same.write(changed + tail)
    list(reading)
    assert chunks.summary.sha256_of_batches == sha256(content[: ends[-1]]).hexdigest()


def test_of_damaged_batches_there_is_none(segment: tuple[bytes, list[int], Path]) -> None:
    content, ends, file = segment
    file.write_bytes(content[: ends[1] - 1] + b"\x55" + content[ends[1] :])
    reader = read_segment(str(file), ReadOptions(digest=True))
    list(reader)
    assert reader.summary.damages
    assert reader.summary.sha256_of_batches is None
