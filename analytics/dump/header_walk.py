"""The chain of batch headers of a file, found without reading what lies between them.

The chain is sequential: a batch's length says where the next begins. It is followed at many places
at once: a header is guessed every quarter of a megabyte, all guesses are followed in lock-step, and
a guess counts only when the chain from the file's first byte arrives at it exactly. What is no
clean chain (a broken length, a magic unknown, offsets that go back) is not judged here.
"""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from analytics.dump.header_columns import HEADER_BYTES, Headers

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from numpy.typing import NDArray

    Fill = Callable[[memoryview, int], None]

CHUNK_BYTES = 16 << 20

_OVERHEAD = 12  # offset and length, which the length does not count
_MAGIC_AT = 16
_LEAST = 14  # of a length, in any format
_LEAST_OF_MAGIC = np.array([14, 22, 49])
_LANE_BYTES = 256 << 10
_GUESS_WINDOW = 2048
# Bytes that look like headers and are none: a file full of them is walked one by one.
_FALSE_GUESSES = 4

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
    fill: Fill, size: int, from_position: int = 0, chunk_bytes: int = CHUNK_BYTES
) -> Iterator[Chain]:
    """Yield the headers of a file, chunk by chunk, up to its end or to where the chain breaks.

    Too few bytes for a header at the end, and a last batch that reaches beyond it, are a break:
    something is there, and no batch.

    Args:
        fill: Fills a buffer with the bytes at a position (`ByteSource.fill`).
        size: Bytes to look at, at most those of the file.
        from_position: Where a batch begins.
        chunk_bytes: Read at a time, whatever the batches' sizes.
    """
    position, last_offset = from_position, -1
    while position < size:
        data = _read(fill, position, min(max(chunk_bytes, HEADER_BYTES), size - position))
        at_end = position + data.size - HEADER_BYTES >= size
        chain = _judged(data, _follow(data, at_end=at_end), position, size, last_offset)
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


def _follow(data: NDArray[np.uint8], *, at_end: bool) -> NDArray[np.int64]:
    """Return where batches begin if every length is right, from the first byte on."""
    # In the middle of a file a header that is cut off is left to the next chunk.
    limit = data.size - HEADER_BYTES - (_MAGIC_AT if at_end else HEADER_BYTES - 1)
    guesses = _guesses(data, limit)
    for _ in range(_FALSE_GUESSES):
        if not guesses.size:
            break
        positions = _in_lock_step(data, np.concatenate([[0], guesses]), limit)
        if positions.size < 2:
            return positions
        follows = positions[:-1] + _OVERHEAD + _lengths(data)[positions[:-1]] == positions[1:]
        if follows.all():
            return positions
        # The chain passed over this guess, or broke before it.
        false_guess = positions[int(np.argmin(follows)) + 1]
        guesses = guesses[guesses != false_guess]
    return _one_by_one(data, limit)


def _lengths(data: NDArray[np.uint8]) -> NDArray[np.int32]:
    """Return the length field of a batch at any position."""
    return np.ndarray((data.size - 11,), ">i4", data, offset=8, strides=(1,))


def _guesses(data: NDArray[np.uint8], limit: int) -> NDArray[np.int64]:
    """Return positions, ascending, that look like headers followed by another one."""
    around = np.arange(_LANE_BYTES, limit - _GUESS_WINDOW, _LANE_BYTES)
    if not around.size:
        return around
    row, column = np.nonzero(
        data[(around + _MAGIC_AT)[:, None] + np.arange(_GUESS_WINDOW)] == 2  # its magic
    )
    start = around[row] + column
    length = _lengths(data)[start].astype(np.int64)
    after = start + _OVERHEAD + length
    likely = (length >= _LEAST_OF_MAGIC[2]) & (after < limit) & (data[start] == 0)
    start, row, after = start[likely], row[likely], after[likely]
    likely = (data[after + _MAGIC_AT] <= 2) & (data[after] == 0)
    start, row = start[likely], row[likely]
    first_in_row: NDArray[np.int64] = np.unique(row, return_index=True)[1]
    found: NDArray[np.int64] = start[first_in_row]
    return found


def _in_lock_step(
    data: NDArray[np.uint8], starts: NDArray[np.int64], limit: int
) -> NDArray[np.int64]:
    """Follow the chain from each start to the next start; return all positions, ascending."""
    lengths = _lengths(data)
    position, end = starts, np.append(starts[1:], limit)
    passed = []
    while position.size:
        passed.append(position)
        length = lengths[position]
        position = position + _OVERHEAD + length
        goes_on = (position < end) & (length >= _LEAST)
        if np.count_nonzero(goes_on) < goes_on.size:
            position, end = position[goes_on], end[goes_on]
    return np.sort(np.concatenate(passed))


def _one_by_one(data: NDArray[np.uint8], limit: int) -> NDArray[np.int64]:
    length_at = struct.Struct(">i").unpack_from
    view = data.data
    position, passed = 0, []
    while position < limit:
        passed.append(position)
        (length,) = length_at(view, position + 8)
        if length < _LEAST:
            break
        position += _OVERHEAD + length
    return np.array(passed, np.int64)


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
