"""Wire types: one function per type, reading a whole column.

Sizes and encodings are those of Kafka's protocol (``org.apache.kafka.common.protocol.types``):
big-endian integers, unsigned varints of 7-bit groups, ``length + 1`` in compact types.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from analytics.wire.cursor import Reason

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from analytics.wire.cursor import Cursor

# Wire dtype and the dtype of the column, by Kafka's type name. A uuid stays 16 raw bytes.
WIRE_DTYPES = {
    "bool": np.dtype("?"),
    "int8": np.dtype("i1"),
    "int16": np.dtype(">i2"),
    "uint16": np.dtype(">u2"),
    "uint32": np.dtype(">u4"),
    "int32": np.dtype(">i4"),
    "int64": np.dtype(">i8"),
    "uuid": np.dtype("V16"),
}
COLUMN_DTYPES = {
    "bool": np.dtype("?"),
    "int8": np.dtype("i1"),
    "int16": np.dtype("i2"),
    "uint16": np.dtype("i4"),
    "uint32": np.dtype("i8"),
    "int32": np.dtype("i4"),
    "int64": np.dtype("i8"),
    "uuid": np.dtype("V16"),
}

_U1 = np.dtype("u1")
_MORE = 0x80
_LOW_BITS = 0x7F
_VARINT_BYTES = 5
_INT32_MAX = 2**31 - 1


def read_unsigned_varint(cursor: Cursor, path: str) -> NDArray[np.int64]:
    """Read an unsigned varint of at most 5 bytes; values above 2^31-1 are refused."""
    data = cursor.buffer.data
    first = data.take(cursor.claim(1, Reason.TRUNCATED, path))
    value = first.astype(np.int64)
    if not first.size or int(first.max()) < _MORE:
        return value
    value &= _LOW_BITS
    rows = np.flatnonzero(first >= _MORE)
    for group in range(1, _VARINT_BYTES):
        part = cursor.select(rows)
        byte = data.take(part.claim(1, Reason.TRUNCATED, path)).astype(np.int64)
        cursor.rejoin(rows, part)
        value[rows] |= (byte & _LOW_BITS) << (7 * group)
        rows = rows[(byte >= _MORE) & ~part.dead]
        if not rows.size:
            break
    endless = value > _INT32_MAX
    endless[rows] = True
    if endless.any():
        cursor.fail(endless, Reason.VARINT_TOO_LONG, path)
    value[cursor.dead] = 0
    return value


def read_compact_length(cursor: Cursor, path: str) -> NDArray[np.int64]:
    """Read the length of a compact string, bytes or array: stored plus one, 0 is null (-1)."""
    return read_unsigned_varint(cursor, path) - 1


def checked_length(
    cursor: Cursor, length: NDArray[np.int64], path: str, *, nullable: bool
) -> NDArray[np.int64]:
    """Read any negative length as null (-1), as Kafka does; refuse it where null is not allowed.

    Rows that are refused get 0.
    """
    if not length.size or int(length.min()) >= 0:
        return length
    if nullable:
        return np.maximum(length, -1)
    below = length < -1
    if below.any():
        cursor.fail(below, Reason.NEGATIVE_LENGTH, path)
    null = length == -1
    if null.any():
        cursor.fail(null, Reason.UNEXPECTED_NULL, path)
    return np.maximum(length, 0)


def claim_content(
    cursor: Cursor, length: NDArray[np.int64], path: str
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Move past the content of strings or bytes; returns its spans, null as length -1."""
    null = length < 0
    start = cursor.claim(
        np.where(null, 0, length) if null.any() else length, Reason.LENGTH_BEYOND_END, path
    )
    if not cursor.sound:
        length = np.where(cursor.dead, 0, length)
    return start, length


def read_byte(cursor: Cursor, path: str) -> NDArray[np.int64]:
    """Read one signed byte."""
    start = cursor.claim(1, Reason.TRUNCATED, path)
    return cursor.buffer.data.take(start).view("i1").astype(np.int64)
