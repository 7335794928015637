"""Spans of a buffer to Arrow strings and binaries, and uuids to Kafka's base64 text."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from analytics.wire.columns import Binary, Fixed

_ASCII = 0x80
# Of texts, at most one in so many has any bytes.
_SPARSE = 2
_UUID_BYTES = 16
_UUID_TEXT = 22
_ALPHABET = np.frombuffer(
    b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_", np.uint8
)


def binary_array(column: Binary) -> pa.Array:
    """Copy spans into an Arrow binary array."""
    length = column.length
    filled = length > 0
    is_dense = _SPARSE * np.count_nonzero(filled) > length.size
    if is_dense and int(length.min()) >= 0:
        return _gather(column.buffer.data, column.start, length)
    # What is empty or null lies nowhere: only the others are copied, none of them where all are.
    rows = np.flatnonzero(filled)
    content = _gather(column.buffer.data, column.start[rows], length[rows]).buffers()[2]
    bounds = np.zeros(length.size + 1, np.int32)
    np.cumsum(np.maximum(length, 0), out=bounds[1:])
    null = length < 0
    validity = pa.array(~null).buffers()[1] if null.any() else None
    buffers = [validity, pa.py_buffer(bounds), content or pa.py_buffer(b"")]
    return pa.Array.from_buffers(pa.binary(), length.size, buffers)


def _gather(data: NDArray[np.uint8], start: NDArray[Any], length: NDArray[Any]) -> pa.Array:
    """Copy non-null spans; spans that ascend without overlap are one native gather."""
    rows = start.size
    if not rows:
        return pa.array([], pa.binary())
    bounds = np.empty(2 * rows, np.int32)
    bounds[0::2] = start
    bounds[1::2] = start + length
    if (bounds[1:] < bounds[:-1]).any():
        order = np.lexsort((length, start))
        if (start[order][1:] < (start + length)[order][:-1]).any():
            return _copy_overlapping(data, start, length)
        place = np.empty(rows, np.int64)
        place[order] = np.arange(rows)
        return _gather(data, start[order], length[order]).take(pa.array(place))
    # The spans between ours are elements too: with ours at the even places, taking those copies
    # all the bytes in one pass of Arrow's own code.
    spans = pa.Array.from_buffers(
        pa.binary(), 2 * rows - 1, [None, pa.py_buffer(bounds), pa.py_buffer(data)]
    )
    return spans.take(pa.array(np.arange(0, 2 * rows, 2)))


def _copy_overlapping(
    data: NDArray[np.uint8], start: NDArray[Any], length: NDArray[Any]
) -> pa.Array:
    bounds = np.zeros(start.size + 1, np.int32)
    np.cumsum(length, out=bounds[1:])
    step = np.arange(int(bounds[-1])) - np.repeat(bounds[:-1], length)
    content = data[np.repeat(start, length) + step]
    return pa.Array.from_buffers(
        pa.binary(), start.size, [None, pa.py_buffer(bounds), pa.py_buffer(content)]
    )


def string_array(column: Binary) -> pa.Array:
    """Copy spans into an Arrow string array.

    Raises:
        pyarrow.ArrowInvalid: Some span is not UTF-8; ``invalid_text`` says which.
    """
    array = binary_array(column)
    validity, offsets, data = array.buffers()
    if _is_ascii(data):
        return pa.Array.from_buffers(
            pa.string(), len(array), [validity, offsets, data], array.null_count
        )
    return array.cast(pa.string())


def _is_ascii(data: pa.Buffer | None) -> bool:
    return data is None or not data.size or int(np.frombuffer(data, np.uint8).max()) < _ASCII


def invalid_text(column: Binary) -> NDArray[np.bool_]:
    """Which spans are not UTF-8."""
    array = binary_array(column)
    if _is_ascii(array.buffers()[2]):
        return np.zeros(column.size, np.bool_)
    return np.array([not _is_utf8(each) for each in array.to_pylist()], np.bool_)


def _is_utf8(content: bytes | None) -> bool:
    try:
        (content or b"").decode()
    except UnicodeDecodeError:
        return False
    return True


def uuid_array(column: Fixed) -> pa.Array:
    """Write uuids as Kafka does: URL-safe base64 of the 16 bytes, 22 characters, no padding."""
    rows = column.size
    padded = np.zeros((rows, 18), np.uint8)
    padded[:, :_UUID_BYTES] = column.values.view(np.uint8).reshape(rows, _UUID_BYTES)
    first, second, third = (padded[:, place::3].astype(np.uint16) for place in range(3))
    digits = np.stack(
        [first >> 2, (first << 4 | second >> 4) & 63, (second << 2 | third >> 6) & 63, third & 63],
        axis=2,
    )
    text = np.ascontiguousarray(_ALPHABET[digits.reshape(rows, 24)[:, :_UUID_TEXT]])
    bounds = np.arange(rows + 1, dtype=np.int32) * _UUID_TEXT
    validity = None if column.valid is None else pa.array(column.valid).buffers()[1]
    return pa.Array.from_buffers(
        pa.string(), rows, [validity, pa.py_buffer(bounds), pa.py_buffer(text)]
    )
