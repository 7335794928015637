"""Batches of one stretch of a file to raw records, whatever their formats and codecs.

In magic 2 (``DefaultRecord.readFrom``) nothing says where a record begins but the lengths of those
before it, and within a record nothing says where a field begins but those before it: one pass from
the first byte to the last, over all batches of a chunk together. A batch in which one record does
not fit is given up as a whole.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

import numpy as np

from analytics.dump.batches.batch_bytes import Damage, DamageReason
from analytics.dump.batches.headers import BATCH_HEADER, MIN_RECORD, Batches
from analytics.dump.records.message_sets import (
    Messages,
    Wrapper,
    open_wrapper,
    read_messages,
    value_of_wrapper,
)
from analytics.dump.records.raw_records import (
    Arena,
    Chunk,
    Codec,
    Expansion,
    RawRecords,
    RecordColumns,
    Spans,
)
from analytics.wire.compiled import BYTES, compiled

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import NDArray

    from analytics.dump.batches.batch_bytes import Limits
    from analytics.wire.compiled import Bytes

_CODECS: Final = {each.value: each.name.lower() for each in Codec}
_ARENA_CHUNKS: Final = 4
"""Decompressed bytes of one piece, in chunks."""

_Failures = dict[int, DamageReason]
"""Why the batch in a row could not be read."""

SOUND, BAD_RECORD, BAD_COUNT = 0, 1, 2
"""How the walk over a batch ended."""

_REASONS = {BAD_RECORD: DamageReason.BAD_RECORD, BAD_COUNT: DamageReason.BAD_RECORD_COUNT}

VARINT: Final = 5
"""Bytes of the longest varint of 32 bits."""
VARLONG: Final = 10
"""Bytes of the longest of 64 bits."""
_START, _END, _COUNT, _BASE_OFFSET, _LAST_OFFSET = range(5)
"""What `walk_records` is told of each batch."""
_INT64_MAX: Final = 2**63 - 1
_BATCH, _OFFSET, _TIMESTAMP, _RECORD_BYTES, _KEY, _KEY_LENGTH, _VALUE, _VALUE_LENGTH = range(8)
COLUMNS: Final = 8
"""What `walk_records` fills in for each record."""


class ChunkReader:
    """Reads stretches of one segment, in file order."""

    def __init__(self, limits: Limits, chunk_bytes: int) -> None:
        self._limits = limits
        self._arena_bytes = min(_ARENA_CHUNKS * chunk_bytes, limits.max_decompressed_bytes)
        self._expansion = Expansion(limits)

    def read(
        self, data: NDArray[np.uint8], file_position: int, batches: Batches
    ) -> Iterator[Chunk]:
        """Yield the records of batches that lie in a buffer, in one piece or several.

        Args:
            data: Bytes of the file, with `PADDING` zeros after them.
            file_position: Where in the file they begin.
            batches: Headers of the batches, in file order.
        """
        self._expansion.earn(int(batches.size.sum()))
        start = batches.position - file_position
        first = 0
        while first < len(batches):
            piece = _Piece(data, start[first:], batches.take(slice(first, None)), self._limits)
            size = piece.decompress(Arena(self._arena_bytes, self._limits, self._expansion))
            yield piece.read()
            first += size


@dataclass
class _Piece:
    """The batches of one chunk."""

    data: NDArray[np.uint8]
    start: NDArray[np.int64]
    batches: Batches
    limits: Limits

    def decompress(self, arena: Arena) -> int:
        """Lay out the regions of as many batches as there is room for; return how many."""
        self._failures: _Failures = {}
        size = self._within_records()
        self._region_start = self.start[:size] + BATCH_HEADER
        self._region_end = self.start[:size] + self.batches.size[:size]
        packed = np.flatnonzero(self.batches.codec[:size] != 0)
        if packed.size:
            size = self._unpack(packed, arena, size)
        self.start, self.batches = self.start[:size], self.batches.take(slice(0, size))
        self._region_start, self._region_end = self._region_start[:size], self._region_end[:size]
        return size

    def _within_records(self) -> int:
        """Return how many batches hold together no more records than one batch may."""
        claimed = np.clip(self.batches.count, 1, None).astype(np.int64)
        plain = self.batches.codec == 0
        claimed[plain] = np.minimum(claimed[plain], self.batches.size[plain] // MIN_RECORD)
        together = np.cumsum(np.minimum(claimed, self.limits.max_batch_records))
        size = int(np.searchsorted(together, self.limits.max_batch_records, "right"))
        for row in np.flatnonzero(claimed[:size] > self.limits.max_batch_records).tolist():
            self._failures[row] = DamageReason.BATCH_TOO_LARGE
        return max(size, 1)

    def _unpack(self, packed: NDArray[np.int64], arena: Arena, size: int) -> int:
        """Decompress rows in order until the arena is full; put regions behind the plain bytes."""
        laid: list[tuple[int, int, int]] = []
        view = self.data.data
        for row in packed.tolist():
            if row in self._failures:
                continue
            content = self._compressed(view, row)
            if content is None:
                self._failures[row] = DamageReason.BAD_RECORD
                continue
            place = arena.add(int(self.batches.codec[row]), content)
            if place is None:
                size = row
                break
            if isinstance(place, DamageReason):
                self._failures[row] = place
            else:
                laid.append((row, *place))
        base = 0
        if packed[packed < size].size == size:
            self.data = arena.data
        else:
            base = self.data.size
            self.data = np.concatenate([self.data, arena.data])
        for row, start, end in laid:
            self._region_start[row], self._region_end[row] = start + base, end + base
        return size

    def _compressed(self, view: memoryview, row: int) -> memoryview | None:
        start, size = int(self.start[row]), int(self.batches.size[row])
        magic = int(self.batches.magic[row])
        if magic == 2:
            return view[start + BATCH_HEADER : start + size]
        message = view[start : start + size]
        value = value_of_wrapper(message, magic)
        return message[value[0] : value[1]] if value else None

    def read(self) -> Chunk:
        """Read the records of the batches laid out."""
        newer = self.batches.magic == 2
        parts = [self._magic_2(np.flatnonzero(newer & self._readable()))]
        if not newer.all():
            parts.append(self._legacy())
        columns = RecordColumns.in_batch_order(parts)
        return self._chunk(columns)

    def _readable(self) -> NDArray[np.bool_]:
        readable = np.ones(len(self.batches), np.bool_)
        readable[list(self._failures)] = False
        return readable

    def _magic_2(self, rows: NDArray[np.int64]) -> RecordColumns:
        batches = self.batches.take(rows)
        regions = Regions(
            start=self._region_start[rows],
            end=self._region_end[rows],
            count=batches.count.astype(np.int64),
            base_offset=batches.base_offset,
            last_offset=batches.last_offset,
            base_timestamp=batches.base_timestamp,
            append_time=batches.max_timestamp,
            is_append_time=batches.timestamp_type == 1,
        )
        columns, failures = _read_batches(self.data, regions)
        self._failures |= {int(rows[row]): why for row, why in failures.items()}
        return replace(columns, batch=rows[columns.batch])

    def _legacy(self) -> RecordColumns:
        """Read messages alone and in wrappers."""
        old = (self.batches.magic < 2) & self._readable()
        plain = np.flatnonzero(old & (self.batches.codec == 0))
        sets = [
            Messages(
                batch=plain,
                start=self.start[plain],
                size=self.batches.size[plain],
                magic=self.batches.magic[plain].astype(np.int64),
                offset=self.batches.base_offset[plain],
            )
        ]
        for row in np.flatnonzero(old & (self.batches.codec != 0)).tolist():
            opened = self._open(row)
            if isinstance(opened, DamageReason):
                self._failures[row] = opened
                continue
            sets.append(opened)
        return self._messages(Messages.in_batch_order(sets))

    def _open(self, row: int) -> Messages | DamageReason:
        wrapper = Wrapper(row, int(self.batches.magic[row]), int(self.batches.last_offset[row]))
        start, end = int(self._region_start[row]), int(self._region_end[row])
        return open_wrapper(self.data, start, end, wrapper, self.limits.max_batch_records)

    def _messages(self, messages: Messages) -> RecordColumns:
        columns, wrong = read_messages(self.data, messages)
        batch = columns.batch
        # A broker's timestamp on the wrapper is that of all messages in it.
        by_broker = (self.batches.timestamp_type[batch] == 1) & (self.batches.codec[batch] != 0)
        timestamp = np.where(by_broker, self.batches.max_timestamp[batch], columns.timestamp)
        columns = replace(columns, timestamp=timestamp)
        if wrong.any():
            broken = np.unique(batch[wrong])
            self._failures |= dict.fromkeys(broken.tolist(), DamageReason.BAD_RECORD)
            columns = columns.take(~np.isin(batch, broken))
        return columns

    def _chunk(self, columns: RecordColumns) -> Chunk:
        readable = self._readable()
        batch = columns.batch
        if self._failures:
            batch = (np.cumsum(readable) - 1)[batch]
        records = RawRecords(
            data=self.data,
            batches=self.batches.take(readable) if self._failures else self.batches,
            batch=batch.astype(np.int32),
            offset=columns.offset,
            timestamp=columns.timestamp,
            record_bytes=columns.record_bytes.astype(np.int32),
            key=columns.key,
            value=columns.value,
        )
        return Chunk(records, [self._damage(row) for row in sorted(self._failures)])

    def _damage(self, row: int) -> Damage:
        batches = self.batches
        size, count = int(batches.size[row]), int(batches.count[row])
        offset, last = int(batches.base_offset[row]), int(batches.last_offset[row])
        most = last - offset + 1
        if not batches.codec[row]:
            most = min(most, size // MIN_RECORD)
        codec = _CODECS.get(int(batches.codec[row]), "unknown codec")
        return Damage(
            int(batches.position[row]),
            size,
            self._failures[row],
            f"magic {batches.magic[row]}, {codec}, claims {count} records",
            offset,
            records=max(min(count, most), 0),
        )


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


def _read_batches(data: NDArray[np.uint8], regions: Regions) -> tuple[RecordColumns, _Failures]:
    """Read all records; those of batches that fail are not among them.

    Args:
        data: The buffer; the regions lie in it.
        regions: Where the records lie.
    """
    # No more than fit: what is claimed beyond that fails, and must not cost memory.
    room = (regions.end - regions.start) // MIN_RECORD
    rows = np.empty((COLUMNS, int(np.clip(regions.count, 0, room).sum())), np.int64)
    outcome = np.empty(regions.count.size, np.int8)
    batches = np.stack(
        [regions.start, regions.end, regions.count, regions.base_offset, regions.last_offset]
    )
    found = walk_records(rows.size, data, batches, rows, outcome)
    batch, offset, timestamp, record_bytes, key, key_length, value, value_length = rows[:, :found]
    timestamp += regions.base_timestamp[batch]
    if regions.is_append_time.any():
        by_broker = regions.is_append_time[batch]
        timestamp = np.where(by_broker, regions.append_time[batch], timestamp)
    failed = np.flatnonzero(outcome)
    reasons = [_REASONS[each] for each in outcome[failed].tolist()]
    columns = RecordColumns(
        batch, offset, timestamp, record_bytes, Spans(key, key_length), Spans(value, value_length)
    )
    return columns, dict(zip(failed.tolist(), reasons, strict=True))


def read_varint(data: Bytes, at: int, end: int, longest: int) -> tuple[int, int]:
    """Read a signed varint: base 128, least significant first, zigzag (``ByteUtils``).

    Returns the value and the place after it; 0 and a place beyond ``end`` where it does not end
    before that or within ``longest`` bytes, and where it would begin there.
    """
    sign = value = 0
    for group in range(longest):
        if at >= end:
            break
        byte = data[at]
        at += 1
        if group == 0:
            sign, value = byte & 1, (byte & 0x7F) >> 1
        else:
            value |= (byte & 0x7F) << (7 * group - 1)
        if byte < 0x80:
            return (value & _INT64_MAX) ^ -sign, at
    return 0, end + 1


def _pass_headers(data: Bytes, at: int, end: int) -> int:
    """Return where the headers of a record end, a place beyond ``end`` where they do not fit."""
    count, at = read_varint(data, at, end, VARINT)
    if count < 0:
        return end + 1
    for part in range(2 * count):
        length, at = read_varint(data, at, end, VARINT)
        # A header's key is never null, its value may be.
        if length < -(part & 1):
            return end + 1
        at += max(length, 0)
        if at > end:
            break
    return at


@compiled(f"int64({BYTES}, int64[:, ::1], int64[:, ::1], int8[::1])", read_varint, _pass_headers)
def walk_records(
    data: Bytes,
    batches: NDArray[np.int64],
    records: NDArray[np.int64],
    outcome: NDArray[np.int8],
) -> int:
    """Find the fields of every record of every batch that is sound from end to end.

    Args:
        data: The buffer.
        batches: Of each batch: where its records begin in the buffer, where they end, how many it
            claims, its first offset, its last.
        records: Filled: `COLUMNS` rows, with room for as many records as are claimed and could fit.
            Timestamps are relative to the batch's; a null key or value has length -1, place 0.
        outcome: Filled: how the walk over each batch ended.

    Returns:
        The number of records found.
    """
    found = 0
    for batch in range(outcome.size):
        first = found
        place, limit = int(batches[_START, batch]), int(batches[_END, batch])
        base_offset, count = int(batches[_BASE_OFFSET, batch]), int(batches[_COUNT, batch])
        before = -1
        why = SOUND
        if count < 0 or count > (limit - place) // MIN_RECORD:
            outcome[batch] = BAD_COUNT
            continue
        for _ in range(count):
            length, body = read_varint(data, place, limit, VARINT)
            stop = body + length
            if length < MIN_RECORD - 1 or stop > limit:
                why = BAD_COUNT if place >= limit else BAD_RECORD
                break
            # Behind the length one byte of attributes, of which none is in use.
            timestamp, at = read_varint(data, body + 1, stop, VARLONG)
            delta, at = read_varint(data, at, stop, VARINT)
            key_length, key = read_varint(data, at, stop, VARINT)
            value_length, value = read_varint(data, key + max(key_length, 0), stop, VARINT)
            at = _pass_headers(data, value + max(value_length, 0), stop)
            # Two records of one offset, or out of order, would be taken for a compacted log's.
            offset = base_offset + delta
            sound = at == stop and key_length >= -1 and value_length >= -1
            sound = sound and before < delta and base_offset <= offset
            if not sound or offset > batches[_LAST_OFFSET, batch]:
                why = BAD_RECORD
                break
            records[_BATCH, found] = batch
            records[_OFFSET, found] = offset
            records[_TIMESTAMP, found] = timestamp
            records[_RECORD_BYTES, found] = stop - place
            records[_KEY, found] = 0 if key_length < 0 else key
            records[_KEY_LENGTH, found] = key_length
            records[_VALUE, found] = 0 if value_length < 0 else value
            records[_VALUE_LENGTH, found] = value_length
            before, place = delta, stop
            found += 1
        if why == SOUND and place != limit:
            why = BAD_COUNT
        if why != SOUND:
            found = first
        outcome[batch] = why
    return found
