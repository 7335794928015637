"""Messages of magic 0 and 1, alone or in a compressed wrapper (``AbstractLegacyRecordBatch``).

The value of a compressed message is a set of messages. In magic 0 their offsets are absolute; in
magic 1 they count from 0, holes included, and the wrapper carries the offset of the last.

A wrapper's header gives the last offset only, and in magic 0 none that counts. Whether a log's
offsets make sense cannot be judged without the others, so these few are decompressed to look.
"""

from __future__ import annotations

import struct
import zlib
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Final, Self

import numpy as np

from analytics.dump.batches.batch_bytes import DamageReason
from analytics.dump.batches.headers import LOG_OVERHEAD, SMALLEST, gather
from analytics.dump.records.raw_records import Arena, Expansion, RecordColumns, Spans

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from analytics.dump.batches.batch_bytes import Limits
    from analytics.dump.batches.headers import Batches
    from analytics.dump.files.storage import ByteSource

_LENGTH: Final = np.dtype(">i4")
_LONG: Final = np.dtype(">i8")
_KEY_AT: Final = np.array([18, 26], np.int64)
"""Where the key's length stands in an entry, by format number."""
_TIMESTAMP_AT: Final = 18
_head = struct.Struct(">qiIbb")
_length_at = struct.Struct(">i").unpack_from

_ARENA: Final = 1 << 20


@dataclass(frozen=True)
class Messages:
    """Entries of magic 0 or 1 in a buffer; one row a message.

    Attributes:
        batch: The batch that the message is, or lies in.
        start: First byte of the entry in the buffer.
        size: Bytes of the entry.
        magic: 0 or 1.
        offset: Absolute.
    """

    batch: NDArray[np.int64]
    start: NDArray[np.int64]
    size: NDArray[np.int64]
    magic: NDArray[np.int64]
    offset: NDArray[np.int64]

    @classmethod
    def in_batch_order(cls, parts: list[Self]) -> Self:
        """Return the rows of all parts, ordered by batch, else as they were."""
        order = np.argsort(np.concatenate([part.batch for part in parts]), kind="stable")
        names = [each.name for each in fields(cls)]
        return cls(
            *(np.concatenate([getattr(part, name) for part in parts])[order] for name in names)
        )


def read_messages(
    data: NDArray[np.uint8], messages: Messages
) -> tuple[RecordColumns, NDArray[np.bool_]]:
    """Read uncompressed messages; also, which of them do not fit their size.

    Args:
        data: The buffer, with `PADDING` bytes after the last message.
        messages: Where they are.
    """
    end = messages.start + messages.size
    key, at, wrong = _field(data, messages.start + _KEY_AT[messages.magic], end)
    value, at, wrong_value = _field(data, at, end)
    wrong |= wrong_value | (at != end)
    timestamp = np.full(end.size, -1, np.int64)
    timed = np.flatnonzero(messages.magic == 1)
    timestamp[timed] = gather(data, messages.start[timed] + _TIMESTAMP_AT, _LONG)
    columns = RecordColumns(messages.batch, messages.offset, timestamp, messages.size, key, value)
    return columns, wrong


def value_of_wrapper(content: memoryview, magic: int) -> tuple[int, int] | None:
    """Return where in one message its value lies; None where it is null or does not fit."""
    at = int(_KEY_AT[magic])
    (key,) = _length_at(content, at)
    at += 4 + max(key, 0)
    if key < -1 or at + 4 > len(content):
        return None
    (value,) = _length_at(content, at)
    at += 4
    return (at, len(content)) if value >= 0 and at + value == len(content) else None


@dataclass(frozen=True)
class Wrapper:
    """A compressed message: its row, format and offset."""

    batch: int
    magic: int
    offset: int


def open_wrapper(
    data: NDArray[np.uint8], start: int, end: int, wrapper: Wrapper, most: int
) -> Messages | DamageReason:
    """Return the messages of a wrapper whose decompressed value lies in a buffer.

    Args:
        data: The buffer.
        start: First byte of the value.
        end: After its last byte.
        wrapper: What it lies in.
        most: At most so many messages.
    """
    raw = data[start:end].tobytes()
    found = _follow_messages(raw, wrapper.magic, most)
    if isinstance(found, DamageReason):
        return found
    starts, offset = np.array(found[0], np.int64), np.array(found[1], np.int64)
    sizes = np.diff(np.append(starts, end - start))
    absolute = _absolute(offset, wrapper)
    if absolute is None:
        return DamageReason.BAD_RECORD
    batch, magic = (np.full(starts.size, each, np.int64) for each in (wrapper.batch, wrapper.magic))
    return Messages(batch, starts + start, sizes, magic, absolute)


def _follow_messages(
    raw: bytes, magic: int, most: int
) -> tuple[list[int], list[int]] | DamageReason:
    """Return begin and stored offset of each message; their checksums agree."""
    starts: list[int] = []
    offsets: list[int] = []
    place, smallest = 0, int(SMALLEST[magic])
    while place < len(raw):
        if place + smallest > len(raw):
            return DamageReason.BAD_RECORD
        offset, size, crc, found_magic, attributes = _head.unpack_from(raw, place)
        end = place + LOG_OVERHEAD + size
        # A message of another format, or compressed again, is none that a broker lets in.
        if end - place < smallest or end > len(raw) or found_magic != magic or attributes & 7:
            return DamageReason.BAD_RECORD
        if zlib.crc32(raw[place + 16 : end]) != crc:
            return DamageReason.BAD_CRC
        if len(starts) == most:
            return DamageReason.BATCH_TOO_LARGE
        starts.append(place)
        offsets.append(offset)
        place = end
    return (starts, offsets) if starts else DamageReason.BAD_RECORD_COUNT


def _absolute(offset: NDArray[np.int64], wrapper: Wrapper) -> NDArray[np.int64] | None:
    if (np.diff(offset) <= 0).any() or offset[0] < 0:
        return None
    if wrapper.magic == 0:
        return offset
    last = int(offset[-1])
    # Sets as producers sent them, never given an offset by a broker, have 0 in the wrapper.
    base = 0 if wrapper.offset == 0 else wrapper.offset - last
    return None if base < 0 else offset + base


def _field(
    data: NDArray[np.uint8], at: NDArray[np.int64], end: NDArray[np.int64]
) -> tuple[Spans, NDArray[np.int64], NDArray[np.bool_]]:
    """Read a length of 4 bytes per row and pass over so many; -1 is null."""
    length = gather(data, at, _LENGTH).astype(np.int64)
    start = at + 4
    after = start + np.maximum(length, 0)
    wrong = (length < -1) | (after > end)
    span = Spans(np.where(length < 0, 0, start), np.maximum(length, -1))
    return span, np.minimum(after, end), wrong


def complete_wrappers(source: ByteSource, batches: Batches, limits: Limits) -> None:
    """Write first offset, last offset and count of compressed messages into their rows.

    Rows of what cannot be opened stay as they are.
    """
    expansion = Expansion(limits)
    packed = (batches.magic < 2) & (batches.codec != 0) & (batches.size <= limits.max_batch_bytes)
    for row in np.flatnonzero(packed).tolist():
        size, magic = int(batches.size[row]), int(batches.magic[row])
        data = source.array(int(batches.position[row]), size)
        value = value_of_wrapper(data.data[:size], magic)
        if value is None:
            continue
        expansion.earn(size)
        arena = Arena(_ARENA, limits, expansion)
        laid = arena.add(int(batches.codec[row]), data.data[slice(*value)])
        if laid is None or isinstance(laid, DamageReason):
            continue
        wrapper = Wrapper(row, magic, int(batches.last_offset[row]))
        messages = open_wrapper(arena.data, *laid, wrapper, limits.max_batch_records)
        if not isinstance(messages, DamageReason):
            batches.base_offset[row] = messages.offset[0]
            batches.last_offset[row] = messages.offset[-1]
            batches.count[row] = messages.offset.size
