"""The records of one uncompressed batch, read one at a time with ``struct``.

An independent way to the bytes of a key and a value, so that the encoder can be held against what
a broker wrote. Compressed batches are left to the reader that is under test.
"""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.support.dump_log import BatchLine

PlainRecord = tuple[int, bytes | None, bytes | None]

_BATCH_OVERHEAD = 61
_RECORDS_COUNT_AT = 57
_MAGIC_0_KEY_AT = 18
_MAGIC_1_KEY_AT = 26


def plain_records(data: bytes, batch: BatchLine) -> Iterator[PlainRecord]:
    """Yield offset, key and value of each record of an uncompressed batch of a segment."""
    assert batch.codec == "none"
    if batch.magic == 2:
        yield from _magic_2(data, batch.position)
        return
    (offset,) = struct.unpack_from(">q", data, batch.position)
    at = batch.position + (_MAGIC_1_KEY_AT if batch.magic == 1 else _MAGIC_0_KEY_AT)
    key, at = _sized(data, at)
    value, _ = _sized(data, at)
    yield offset, key, value


def _sized(data: bytes, at: int) -> tuple[bytes | None, int]:
    (size,) = struct.unpack_from(">i", data, at)
    at += 4
    return (None, at) if size < 0 else (data[at : at + size], at + size)


def _magic_2(data: bytes, position: int) -> Iterator[PlainRecord]:
    (base_offset,) = struct.unpack_from(">q", data, position)
    (count,) = struct.unpack_from(">i", data, position + _RECORDS_COUNT_AT)
    at = position + _BATCH_OVERHEAD
    for _ in range(count):
        length, at = _varint(data, at)
        end = at + length
        _, at = _varint(data, at + 1)
        delta, at = _varint(data, at)
        key, at = _varint_sized(data, at)
        value, _ = _varint_sized(data, at)
        yield base_offset + delta, key, value
        at = end


def _varint(data: bytes, at: int) -> tuple[int, int]:
    value = shift = 0
    while True:
        byte = data[at]
        at += 1
        value |= (byte & 0x7F) << shift
        shift += 7
        if byte < 0x80:
            return (value >> 1) ^ -(value & 1), at


def _varint_sized(data: bytes, at: int) -> tuple[bytes | None, int]:
    size, at = _varint(data, at)
    return (None, at) if size < 0 else (data[at : at + size], at + size)
