"""Records of magic 2 batches, all batches of a chunk together (``DefaultRecord``).

Nothing says where a record begins but the lengths of those before it. So the k-th record of every
batch is found in one step; then each field is read of all records at once. Every bound is a mask: a
batch in which one record does not fit is given up as a whole.
"""

from __future__ import annotations

import itertools
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np

from analytics.dump.damage import DamageReason
from analytics.dump.headers import MIN_RECORD
from analytics.dump.raw_records import Spans
from analytics.dump.record_columns import RecordColumns
from analytics.dump.varints import VARINT, VARLONG, read_varints

if TYPE_CHECKING:
    from numpy.typing import NDArray

_TOGETHER: Final = 48
"""Below so many batches a plain loop over the records left is faster than steps of numpy."""
_MIN_HEADER: Final = 2

Failures = dict[int, DamageReason]
"""Why the batch in a row could not be read."""


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
    chain = _Chain(data, regions.start, regions.end, count)
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


class _Chain:
    """Where the records of each batch begin and end."""

    def __init__(
        self,
        data: NDArray[np.uint8],
        start: NDArray[np.int64],
        limit: NDArray[np.int64],
        count: NDArray[np.int64],
    ) -> None:
        self._data, self._start, self._limit, self._count = data, start, limit, count
        total = int(count.sum())
        self._first = np.cumsum(count) - count
        self.begin = np.empty(total, np.int64)
        self.body = np.empty(total, np.int64)
        self.end = np.empty(total, np.int64)
        self.failures: Failures = {}

    def follow(self) -> None:
        """Find all records; batches that do not end where they should are failures."""
        # Largest first, so that the batches that still have a record are always the first rows.
        order = np.argsort(-self._count, kind="stable")
        counts = -self._count[order]
        place = self._start[order]
        limit, first = self._limit[order], self._first[order]
        done = 0
        for step in itertools.count():
            width = int(np.searchsorted(counts, -step))
            if width < _TOGETHER:
                break
            place[:width] = self._step(place[:width], limit[:width], first[:width] + step, order)
            done = step + 1
        rest = int(np.searchsorted(counts, -done))
        for row in range(rest):
            place[row] = self._one(int(order[row]), int(place[row]), done)
        short = order[place < limit]
        for row in short.tolist():
            self.failures.setdefault(row, DamageReason.BAD_RECORD_COUNT)

    def _step(
        self,
        place: NDArray[np.int64],
        limit: NDArray[np.int64],
        slot: NDArray[np.int64],
        order: NDArray[np.int64],
    ) -> NDArray[np.int64]:
        """Find one record in each batch; return where the next ones begin."""
        length, body, endless = read_varints(self._data, place, VARINT)
        end = body + length
        wrong = (length < MIN_RECORD - 1) | (end > limit)
        if endless is not None:
            wrong |= endless
        if wrong.any():
            for row in np.flatnonzero(wrong).tolist():
                self._fail(int(order[row]), at_end=bool(place[row] >= limit[row]))
            # Nothing further is read of them; the limit is a safe place to stay.
            body = np.where(wrong, limit, body)
            end = np.where(wrong, limit, end)
        self.begin[slot], self.body[slot], self.end[slot] = place, body, end
        return end

    def _one(self, batch: int, place: int, done: int) -> int:
        """Find all further records of one batch; return where it ends."""
        limit, slot = int(self._limit[batch]), int(self._first[batch]) + done
        left = int(self._count[batch]) - done
        if batch in self.failures:
            self._fill(slot, left, limit)
            return limit
        start = place
        raw = self._data[start : limit + VARINT].tobytes()
        found, at_end = _follow_records(raw, limit - start, left)
        size = len(found) // 2
        edges = np.array(found, np.int64).reshape(-1, 2) + start
        self.begin[slot : slot + size] = edges[:, 0]
        self.body[slot : slot + size] = edges[:, 1]
        ends = np.append(edges[1:, 0], limit) if size == left else edges[1:, 0]
        self.end[slot : slot + ends.size] = ends
        if size < left:
            self._fill(slot, left, limit)
            self._fail(batch, at_end=at_end)
        return limit

    def _fill(self, slot: int, count: int, limit: int) -> None:
        for column in (self.begin, self.body, self.end):
            column[slot : slot + count] = limit

    def _fail(self, batch: int, *, at_end: bool) -> None:
        reason = DamageReason.BAD_RECORD_COUNT if at_end else DamageReason.BAD_RECORD
        self.failures.setdefault(batch, reason)


def _follow_records(raw: bytes, limit: int, count: int) -> tuple[list[int], bool]:
    """Return begin and body of each record, alternating; fewer than ``count`` where they fail.

    The last record must end at ``limit``. Also returned is whether it is the number of records that
    is wrong.
    """
    found: list[int] = []
    place = 0
    for _ in range(count):
        value = shift = 0
        body = place
        while True:
            byte = raw[body]
            body += 1
            value |= (byte & 0x7F) << shift
            shift += 7
            if byte < 0x80 or shift >= 7 * VARINT:
                break
        length = (value >> 1) ^ -(value & 1)
        if byte >= 0x80 or length < MIN_RECORD - 1 or body + length > limit:
            return found, place >= limit
        found += (place, body)
        place = body + length
    return (found, False) if place == limit else (found[:-2], True)


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
        while rows.size >= _TOGETHER:
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
