"""Where the batches of a partition begin and end, read from the headers of its segments."""

from __future__ import annotations

import struct
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

_FRAME = struct.Struct(">qi")  # base offset, and the bytes after this field
_LAST_DELTA = struct.Struct(">i")
_LAST_DELTA_AT = 23
_MAX_TIMESTAMP = struct.Struct(">q")
_MAX_TIMESTAMP_AT = 35


@dataclass(frozen=True)
class Batch:
    """A batch: its offsets, its newest timestamp, and its bytes in a segment."""

    segment: Path
    start: int
    end: int
    base_offset: int
    last_offset: int
    max_timestamp: int

    def read(self) -> bytes:
        """Return its bytes."""
        with self.segment.open("rb") as file:
            file.seek(self.start)
            return file.read(self.end - self.start)


def batches_of(partition: Path) -> list[Batch]:
    """Return the whole batches of a partition's segments, in order."""
    return [each for segment in sorted(partition.glob("*.log")) for each in _of_segment(segment)]


def _of_segment(segment: Path) -> Iterator[Batch]:
    data = segment.read_bytes()
    at = 0
    while at + _FRAME.size <= len(data):
        base, size = _FRAME.unpack_from(data, at)
        end = at + _FRAME.size + size
        if end > len(data) or size <= 0:
            return  # the broker was killed while it wrote
        (delta,) = _LAST_DELTA.unpack_from(data, at + _LAST_DELTA_AT)
        (newest,) = _MAX_TIMESTAMP.unpack_from(data, at + _MAX_TIMESTAMP_AT)
        yield Batch(segment, at, end, base, base + delta, newest)
        at = end
