"""Magic 2 records read one byte at a time, as the format's description has it.

Slow and plain, for holding the columnar reader against: a batch is read whole or refused.
"""

from __future__ import annotations

import struct

from tests.support.segments import Record

_LOG_APPEND_TIME = 0x08


class RefusedError(Exception):
    """The batch is not what its header says."""


def read_plain_batch(data: bytes) -> list[Record]:
    """Return the records of one uncompressed batch.

    Raises:
        RefusedError: A record does not fit.
    """
    (base,) = struct.unpack_from(">q", data, 0)
    attributes, last_delta, start, latest = struct.unpack_from(">hiqq", data, 21)
    (count,) = struct.unpack_from(">i", data, 57)
    append_time = latest if attributes & _LOG_APPEND_TIME else None
    found: list[Record] = []
    at, before = 61, -1
    _require(count >= 0)
    for _ in range(count):
        length, at = _varint(data, at, 5)
        end = at + length
        _require(length >= 6 and end <= len(data))
        delta, timestamp, key, value = _record(data[:end], at)
        _require(before < delta <= last_delta)
        before = delta
        stamp = _wrapped(start + timestamp) if append_time is None else append_time
        found.append(Record(base + delta, stamp, key, value))
        at = end
    _require(at == len(data))
    return found


def _record(data: bytes, at: int) -> tuple[int, int, bytes | None, bytes | None]:
    timestamp, at = _varint(data, at + 1, 10)
    delta, at = _varint(data, at, 5)
    key, at = _sized(data, at)
    value, at = _sized(data, at)
    headers, at = _varint(data, at, 5)
    _require(headers >= 0)
    for _ in range(headers):
        name, at = _sized(data, at)
        _require(name is not None)
        _, at = _sized(data, at)
    _require(at == len(data))
    return delta, _wrapped(timestamp), key, value


def _sized(data: bytes, at: int) -> tuple[bytes | None, int]:
    length, at = _varint(data, at, 5)
    _require(length >= -1 and at + length <= len(data))
    return (None, at) if length < 0 else (data[at : at + length], at + length)


def _varint(data: bytes, at: int, longest: int) -> tuple[int, int]:
    value = 0
    for place in range(longest):
        _require(at + place < len(data))
        byte = data[at + place]
        value |= (byte & 0x7F) << 7 * place
        if byte < 0x80:
            return value >> 1 ^ -(value & 1), at + place + 1
    raise RefusedError


def _wrapped(value: int) -> int:
    """What Java's 64 bits hold of it."""
    return (value + 2**63) % 2**64 - 2**63


def _require(condition: bool) -> None:
    if not condition:
        raise RefusedError
