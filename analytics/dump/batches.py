"""Records of magic 2 batches, all batches of a chunk together (``DefaultRecord``).

Nothing says where a record begins but the lengths of those before it. So the k-th record of every
batch is found in one step; then each field is read of all records at once. Every bound is a mask: a
batch in which one record does not fit is given up as a whole.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np

from analytics.dump.damage import DamageReason
from analytics.dump.headers import MIN_RECORD
from analytics.dump.raw_records import Spans
from analytics.dump.record_chain import TOGETHER, Failures, RecordChain
from analytics.dump.record_columns import RecordColumns
from analytics.dump.varints import VARINT, VARLONG, read_varints

if TYPE_CHECKING:
    from numpy.typing import NDArray

_MIN_HEADER: Final = 2


@dataclass(frozen=True)
class Regions:
    """Where the records of magic 2 batches lie, decompressed; one row a batch.

    Attributes:
        start: First byte in the buffer.
        end: After the last byte.
        count: Records claimed.
        base_offset: Of the batch.
        last_offset: Of the batch.
        base_timestamp: What the records' timestamps are relative to.
        append_time: Timestamp of all records where ``is_append_time``.
        is_append_time: The broker set the timestamps.
    """

    start: NDArray[np.int64]
    end: NDArray[np.int64]
    count: NDArray[np.int64]
    base_offset: NDArray[np.int64]
    last_offset: NDArray[np.int64]
    base_timestamp: NDArray[np.int64]
    append_time: NDArray[np.int64]
    is_append_time: NDArray[np.bool_]


def read_batches(data: NDArray[np.uint8], regions: Regions) -> tuple[RecordColumns, Failures]:
    """Read all records; those of batches that fail are not among them.

    Args:
        data: The buffer, with `PADDING` bytes after the last region.
        regions: Where the records lie.
    """
    failures: Failures = {}
    room = (regions.end - regions.start) // MIN_RECORD
    misclaimed = np.flatnonzero((regions.count < 0) | (regions.count > room))
    failures.update(dict.fromkeys(misclaimed.tolist(), DamageReason.BAD_RECORD_COUNT))
    count = regions.count.copy()
    count[misclaimed] = 0
    chain = RecordChain(data, regions.start, regions.end, count)
    chain.follow()
    failures |= {row: why for row, why in chain.failures.items() if row not in failures}
    batch = np.repeat(np.arange(count.size), count)
    if failures:
        sound = np.ones(count.size, np.bool_)
        sound[list(failures)] = False
        kept = sound[batch]
        batch, begin = batch[kept], chain.begin[kept]
        body, end = chain.body[kept], chain.end[kept]
    else:
        begin, body, end = chain.begin, chain.body, chain.end
    columns, wrong = _read_fields(data, regions, batch, begin, body, end)
    if wrong.any():
        broken = np.unique(batch[wrong])
        failures.update(dict.fromkeys(broken.tolist(), DamageReason.BAD_RECORD))
        columns = columns.take(~np.isin(batch, broken))
    return columns, failures


def _read_fields(
    data: NDArray[np.uint8],
    regions: Regions,
    batch: NDArray[np.int64],
    begin: NDArray[np.int64],
    body: NDArray[np.int64],
    end: NDArray[np.int64],
) -> tuple[RecordColumns, NDArray[np.bool_]]:
    """Read the fields of all records; also, which records do not fit."""
    fields = _Fields(data, body + 1, end)
    timestamp_delta = fields.varint(VARLONG)
    offset_delta = fields.varint(VARINT)
    key = fields.span()
    value = fields.span()
    fields.headers()
    wrong = fields.wrong | (fields.at != end)
    offset = regions.base_offset[batch] + offset_delta
    wrong |= (offset_delta < 0) | (offset > regions.last_offset[batch])
    # Two records of one offset, or out of order, would be taken for a compacted log's.
    falls = (offset[1:] <= offset[:-1]) & (batch[1:] == batch[:-1])
    wrong[1:] |= falls
    timestamp = regions.base_timestamp[batch] + timestamp_delta
    if regions.is_append_time.any():
        by_broker = regions.is_append_time[batch]
        timestamp = np.where(by_broker, regions.append_time[batch], timestamp)
    return RecordColumns(batch, offset, timestamp, end - begin, key, value), wrong


class _Fields:
    """A position per record, advanced by each field that is read."""

    def __init__(
        self, data: NDArray[np.uint8], at: NDArray[np.int64], end: NDArray[np.int64]
    ) -> None:
        self._data, self.at, self._end = data, at, end
        self.wrong = np.zeros(at.size, np.bool_)

    def varint(self, longest: int) -> NDArray[np.int64]:
        """Read a varint of each record."""
        value, self.at, endless = read_varints(self._data, self.at, longest)
        if endless is not None:
            self.wrong |= endless
        self._stay_inside()
        return value

    def span(self) -> Spans:
        """Read a length of each record and pass over so many bytes; -1 is null."""
        length = self.varint(VARINT)
        start = self.at
        self.wrong |= length < -1
        null = length < 0
        if null.any():
            start = np.where(null, 0, start)
            self.at = self.at + np.maximum(length, 0)
            length = np.where(null, -1, length)
        else:
            self.at = self.at + length
        self._stay_inside()
        return Spans(start, length)

    def headers(self) -> None:
        """Pass over the record headers."""
        count = self.varint(VARINT)
        if not count.any():
            return
        self.wrong |= (count < 0) | (count > (self._end - self.at) // _MIN_HEADER)
        rows = np.flatnonzero((count > 0) & ~self.wrong)
        left = count[rows]
        while rows.size >= TOGETHER:
            inner = _Fields(self._data, self.at[rows], self._end[rows])
            key = inner.varint(VARINT)
            inner.wrong |= key < 0
            inner.at = inner.at + np.maximum(key, 0)
            inner._stay_inside()
            inner.span()
            self.at[rows] = inner.at
            self.wrong[rows] |= inner.wrong
            left = left - 1
            going = (left > 0) & ~inner.wrong
            rows, left = rows[going], left[going]
        for row, headers in zip(rows.tolist(), left.tolist(), strict=True):
            self._headers_of(row, headers)

    def _headers_of(self, row: int, count: int) -> None:
        start, end = int(self.at[row]), int(self._end[row])
        after = _follow_headers(self._data[start : end + VARINT].tobytes(), end - start, count)
        if after < 0:
            self.wrong[row] = True
        else:
            self.at[row] = start + after

    def _stay_inside(self) -> None:
        beyond = self.at > self._end
        if beyond.any():
            self.wrong |= beyond
            self.at = np.where(beyond, self._end, self.at)


def _follow_headers(raw: bytes, limit: int, count: int) -> int:
    """Return where ``count`` record headers end, -1 where they do not fit."""
    place = 0
    for number in range(2 * count):
        value = shift = 0
        while True:
            if place >= limit or shift >= 7 * VARINT:
                return -1
            byte = raw[place]
            place += 1
            value |= (byte & 0x7F) << shift
            shift += 7
            if byte < 0x80:
                break
        length = (value >> 1) ^ -(value & 1)
        # A key is never null, a value may be.
        if length < -(number & 1):
            return -1
        place += max(length, 0)
    return place if place <= limit else -1
