"""Records of magic 2 read one after the other with `struct`: the loop one would write first.

It knows what the generated segments hold (no compression, no headers, no control batches) and
checks nothing, which is an advantage over a decoder that must expect anything.
"""

from __future__ import annotations

import struct
from collections.abc import Callable

HEADER = struct.Struct(">qiibIhiqqqhii")
_TRANSACTIONAL = 0x10

# Surroundings without record type and version, the key's bytes, the value's.
Take = Callable[[tuple[object, ...], bytes, bytes | None], None]


def varint(data: bytes, position: int) -> tuple[int, int]:
    """Return a zigzag varint and the position after it."""
    byte = data[position]
    position += 1
    if byte < 0x80:
        return (byte >> 1) ^ -(byte & 1), position
    value, shift = byte & 0x7F, 7
    while True:
        byte = data[position]
        position += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return (value >> 1) ^ -(value & 1), position
        shift += 7


def each_record(data: bytes, take: Take, flush: Callable[[], None]) -> int:
    """Hand every record to ``take``, call ``flush`` between batches; returns how many there are."""
    position, records = 0, 0
    while position < len(data):
        header = HEADER.unpack_from(data, position)
        base_offset, length, epoch, _, _, attributes, _, first_timestamp = header[:8]
        producer, producer_epoch, count = header[9], header[10], header[12]
        transactional = bool(attributes & _TRANSACTIONAL)
        at = position + HEADER.size
        for _ in range(count):
            start = at
            size, at = varint(data, at)
            end = at + size
            timestamp_delta, at = varint(data, at + 1)
            offset_delta, at = varint(data, at)
            key_size, at = varint(data, at)
            key = data[at : at + key_size]
            at += key_size
            value_size, at = varint(data, at)
            value = data[at : at + value_size] if value_size >= 0 else None
            take(
                (
                    base_offset + offset_delta,
                    (first_timestamp + timestamp_delta) * 1000,
                    epoch,
                    producer,
                    producer_epoch,
                    transactional,
                    base_offset,
                    position,
                    end - start,
                ),
                key,
                value,
            )
            at = end
        records += count
        position += length + 12
        flush()
    return records
