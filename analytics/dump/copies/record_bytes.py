"""Records of a stretch of a log, as bytes that can be held against another copy's."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from analytics.dump.records.segment_reader import FileReader, ReadOptions

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import NDArray

    from analytics.dump.batches.walks import CopyLog
    from analytics.dump.records.raw_records import RawRecords, Spans


@dataclass(frozen=True)
class RecordBytes:
    """Records, ascending by offset, and their keys and values one after the other.

    Attributes:
        offset: Of each record.
        timestamp: Milliseconds, -1 none.
        key_length: -1 null.
        value_length: -1 null.
        start: Where the key's bytes, and after them the value's, begin in ``content``.
        content: The bytes.
    """

    offset: NDArray[np.int64]
    timestamp: NDArray[np.int64]
    key_length: NDArray[np.int64]
    value_length: NDArray[np.int64]
    start: NDArray[np.int64]
    content: NDArray[np.uint8]

    @property
    def length(self) -> NDArray[np.int64]:
        """Bytes of key and value together."""
        return np.maximum(self.key_length, 0) + np.maximum(self.value_length, 0)


def records_between(log: CopyLog, low: int, high: int) -> RecordBytes:
    """Read the records with offsets from ``low`` to before ``high``; damaged ones are not there."""
    return _joined([_record_bytes(part, low, high) for part in _read(log, low, high)])


def offsets_between(log: CopyLog, low: int, high: int) -> NDArray[np.int64]:
    """Return the offsets of the records from ``low`` to before ``high``, ascending."""
    parts = [records.offset for records in _read(log, low, high)]
    offsets = np.sort(np.concatenate([np.empty(0, np.int64), *parts]))
    return offsets[(offsets >= low) & (offsets < high)]


def first_difference(ours: RecordBytes, theirs: RecordBytes) -> int | None:
    """Return the first offset at which both have a record, and not the same one."""
    offset, own, other = np.intersect1d(
        ours.offset, theirs.offset, assume_unique=True, return_indices=True
    )
    differs = ours.timestamp[own] != theirs.timestamp[other]
    differs |= ours.key_length[own] != theirs.key_length[other]
    differs |= ours.value_length[own] != theirs.value_length[other]
    rows = np.flatnonzero(~differs)
    length = ours.length[own[rows]]
    left = ours.content[_bytes_of(ours.start[own[rows]], length)]
    right = theirs.content[_bytes_of(theirs.start[other[rows]], length)]
    differs[rows[np.unique(np.repeat(np.arange(rows.size), length)[left != right])]] = True
    return int(offset[int(differs.argmax())]) if differs.any() else None


def _read(log: CopyLog, low: int, high: int) -> Iterator[RawRecords]:
    headers = log.headers
    rows = np.flatnonzero((headers.last_offset >= low) & (headers.base_offset < high))
    for number in np.unique(log.file[rows]).tolist():
        here = rows[log.file[rows] == number]
        walk = log.walks[number]
        options = ReadOptions(
            from_position=int(headers.position[here[0]]),
            to_position=int(headers.position[here[-1]] + headers.size[here[-1]]),
            keep_content=False,
            sense=walk.sense,
        )
        for chunk in FileReader(walk.segment.path, options):
            yield chunk.records


def _record_bytes(records: RawRecords, low: int, high: int) -> RecordBytes:
    rows = np.flatnonzero((records.offset >= low) & (records.offset < high))
    key, value = records.key.take(rows), records.value.take(rows)
    # A record's key and value need not be neighbours: both are copied, alternating.
    spans = np.column_stack([key.start, value.start]).ravel()
    lengths = np.column_stack([_size(key), _size(value)]).ravel()
    ends = np.cumsum(lengths)
    return RecordBytes(
        offset=records.offset[rows],
        timestamp=records.timestamp[rows],
        key_length=key.length,
        value_length=value.length,
        start=(ends - lengths)[0::2],
        content=records.data[_bytes_of(spans, lengths)],
    )


def _joined(parts: list[RecordBytes]) -> RecordBytes:
    shifts = np.cumsum([0, *(part.content.size for part in parts)])
    nothing = np.empty(0, np.int64)
    columns = {
        name: np.concatenate([nothing, *(getattr(part, name) for part in parts)])
        for name in ("offset", "timestamp", "key_length", "value_length")
    }
    starts = [part.start + shift for part, shift in zip(parts, shifts[:-1], strict=True)]
    content = np.concatenate([np.empty(0, np.uint8), *(part.content for part in parts)])
    return RecordBytes(start=np.concatenate([nothing, *starts]), content=content, **columns)


def _size(spans: Spans) -> NDArray[np.int64]:
    return np.maximum(spans.length, 0)


def _bytes_of(start: NDArray[np.int64], length: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return the positions of all bytes of ranges, one range after the other."""
    before = np.cumsum(length) - length
    return np.repeat(start - before, length) + np.arange(int(length.sum()))
