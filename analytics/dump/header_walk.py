"""The chain of batch headers of a file, found without reading what lies between them.

A batch's length says where the next begins. What is no clean chain (a broken length, a magic
unknown, offsets that go back) is not judged here.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from analytics.dump.header_columns import HEADER_BYTES, Headers
from analytics.wire.compiled import BYTES, Int, compiled

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from numpy.typing import NDArray

    Fill = Callable[[memoryview, int], None]

CHUNK_BYTES = 8 << 20

_OVERHEAD = 12  # offset and length, which the length does not count
_LENGTH_AT = 8
_MAGIC_AT = 16
_LEAST = 14  # of a length, in any format
_LEAST_OF_MAGIC = np.array([14, 22, 49])
# A smaller file is read: a page of a mapping costs more to visit than to copy.
_WORTH_MAPPING = 128 << 10
# Positions found at once; bounds what a long file of small batches takes.
_STARTS = 1 << 16

# One buffer serves all files of a process: fresh memory costs more than the reading.
_buffer = np.zeros(0, np.uint8)


class Chain(NamedTuple):
    """Headers of consecutive batches; ``end`` is the position after the last one.

    ``clean`` is false where the chain breaks at ``end``: no batch follows as it stands.
    """

    headers: Headers
    end: int
    clean: bool


def walk_chain(
    fill: Fill,
    size: int,
    chunk_bytes: int = CHUNK_BYTES,
    mapped: NDArray[np.uint8] | None = None,
) -> Iterator[Chain]:
    """Yield the headers of a file, chunk by chunk, up to its end or to where the chain breaks.

    Too few bytes for a header at the end, and a last batch that reaches beyond it, are a break:
    something is there, and no batch.

    Args:
        fill: Fills a buffer with the bytes at a position (`ByteSource.fill`).
        size: Bytes to look at, at most those of the file.
        chunk_bytes: Read at a time, whatever the batches' sizes.
        mapped: The file's bytes, where they need not be read; only its end is filled then.
    """
    position, last_offset = 0, -1
    while position < size:
        data = mapped
        if data is None or position > 0 or size < _WORTH_MAPPING:
            data = _read(fill, position, min(max(chunk_bytes, HEADER_BYTES), size - position))
        at_end = position + data.size - HEADER_BYTES >= size
        # In the middle of a file a header that is cut off is left to the next chunk.
        limit = data.size - HEADER_BYTES - (_MAGIC_AT if at_end else HEADER_BYTES - 1)
        chain = _judged(data, chain_starts(data, limit), position, size, last_offset)
        yield chain
        if not chain.clean or not len(chain.headers):
            return
        position = chain.end
        last_offset = int(chain.headers.last_offset[-1])


def _read(fill: Fill, position: int, wanted: int) -> NDArray[np.uint8]:
    """Return the bytes at a position, followed by a header's length of zeros."""
    global _buffer  # noqa: PLW0603 - see above
    if _buffer.size < wanted + HEADER_BYTES:
        _buffer = np.zeros(max(wanted, CHUNK_BYTES) + HEADER_BYTES, np.uint8)
    fill(_buffer.data[:wanted], position)
    _buffer[wanted : wanted + HEADER_BYTES] = 0
    return _buffer[: wanted + HEADER_BYTES]


def chain_starts(data: NDArray[np.uint8], limit: int) -> NDArray[np.int64]:
    """Return where entries begin if every length is right, from the first byte on.

    Args:
        data: Bytes of a file, with more than a header's length of any bytes after ``limit``.
        limit: Entries that begin here or later are not looked for.
    """
    parts, at = [], 0
    while at < limit:
        starts = np.empty(min(_STARTS, (limit - at) // (_OVERHEAD + _LEAST) + 1), np.int64)
        found, at = _follow(data, at, limit, starts)
        parts.append(starts[:found])
    return np.concatenate(parts) if parts else np.empty(0, np.int64)


@compiled(f"UniTuple(int64, 2)({BYTES}, int64, int64, int64[::1])")
def _follow(
    data: NDArray[np.uint8], at: int, limit: int, starts: NDArray[np.int64]
) -> tuple[int, int]:
    """Fill in where entries begin, from ``at`` on; return how many, and where to go on."""
    for found in range(starts.size):
        starts[found] = at
        length: Int = 0
        for place in range(at + _LENGTH_AT, at + _OVERHEAD):
            length = length << 8 | np.int64(data[place])
        # A length too small for any batch leads nowhere: the chain breaks where it stands.
        at = limit if length < _LEAST else at + _OVERHEAD + length
        if at >= limit:
            return found + 1, limit
    return starts.size, at


def length_fields(data: NDArray[np.uint8]) -> NDArray[np.uint32]:
    """Return what would be the length of an entry that begins at each position."""
    return np.ndarray((data.size - 11,), ">u4", data, offset=8, strides=(1,))


def _judged(
    data: NDArray[np.uint8], start: NDArray[np.int64], first: int, size: int, last_offset: int
) -> Chain:
    """Return the headers at ``start`` up to the first that cannot be one."""
    headers = Headers.at(data, start, first)
    if not len(headers):
        return Chain(headers, first, clean=False)
    before = np.concatenate([[last_offset], headers.last_offset[:-1]])
    sound = (headers.magic >= 0) & (headers.magic <= 2)
    sound &= headers.size - _OVERHEAD >= _LEAST_OF_MAGIC[np.where(sound, headers.magic, 0)]
    sound &= headers.position + headers.size <= size
    sound &= (headers.base_offset > before) & (headers.last_offset >= headers.base_offset)
    sound &= (headers.count >= 0) | (headers.magic < 2)
    sound &= headers.leader_epoch >= -1
    good = len(headers) if sound.all() else int(np.argmin(sound))
    end = int(headers.position[good - 1] + headers.size[good - 1]) if good else first
    return Chain(headers.take(slice(good)), end, clean=good == len(headers))
