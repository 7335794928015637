"""The chain of batch headers of a file, found without reading what lies between them.

The chain is sequential: a batch's length says where the next begins. A loop must be compiled to be
fast (`batch_chain`), and loading a compiler takes longer than this whole walk. So it is followed at
many places at once: a header is guessed every 128 KiB, all guesses are followed in lock-step, and a
guess counts only when the chain from the file's first byte arrives at it exactly. What is no
clean chain (a broken length, a magic unknown, offsets that go back) is not judged here.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from analytics.dump.batches.batch_chain import LEAST_SIZE, chain_starts, size_fields
from analytics.dump.batches.header_columns import HEADER_BYTES, Headers
from analytics.dump.batches.headers import LOG_OVERHEAD, MAGIC_AT, SMALLEST

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from numpy.typing import NDArray

    Fill = Callable[[memoryview, int], None]

CHUNK_BYTES = 8 << 20

_LEAST_SIZES = SMALLEST - LOG_OVERHEAD  # by format number
_LANE_BYTES = 128 << 10
_STEPS = 32
_FAR = 2**62
_GUESS_WINDOW = 1024
# Bytes that look like headers and are none: a file full of them is walked one by one.
_FALSE_GUESSES = 4
# Where a header has the high bytes of its base offset, length, attributes and last offset's delta.
_HIGH_BYTES = (0, 1, 8, 21, 23)

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
        if data is None or position > 0 or size < _LANE_BYTES:
            data = _read(fill, position, min(max(chunk_bytes, HEADER_BYTES), size - position))
        at_end = position + data.size - HEADER_BYTES >= size
        # In the middle of a file a header that is cut off is left to the next chunk.
        limit = data.size - HEADER_BYTES - (MAGIC_AT if at_end else HEADER_BYTES - 1)
        chain = _judged(data, _starts(data, limit), position, size, last_offset)
        yield chain
        if not chain.clean or not len(chain.headers):
            return
        position = chain.end
        last_offset = int(chain.headers.last_offset[-1])


def _read(fill: Fill, position: int, size: int) -> NDArray[np.uint8]:
    """Return the bytes at a position, followed by a header's length of zeros."""
    global _buffer  # noqa: PLW0603 - see above
    if _buffer.size < size + HEADER_BYTES:
        _buffer = np.zeros(max(size, CHUNK_BYTES) + HEADER_BYTES, np.uint8)
    fill(_buffer.data[:size], position)
    _buffer[size : size + HEADER_BYTES] = 0
    return _buffer[: size + HEADER_BYTES]


def _starts(data: NDArray[np.uint8], limit: int) -> NDArray[np.int64]:
    """Return where entries begin if every length is right, from the first byte on.

    Args:
        data: Bytes of a file, with more than a header's length of any bytes after ``limit``.
        limit: Entries that begin here or later are not looked for.
    """
    guesses = _guesses(data, limit)
    for _ in range(_FALSE_GUESSES):
        if not guesses.size:
            break
        positions, false_guess = _in_lock_step(data, np.concatenate([[0], guesses]), limit)
        if false_guess is None:
            return positions
        guesses = guesses[guesses != false_guess]
    return chain_starts(data, limit)


def _guesses(data: NDArray[np.uint8], limit: int) -> NDArray[np.int64]:
    """Return positions, ascending, that look like headers followed by another one."""
    lanes = (limit - _GUESS_WINDOW - 1) // _LANE_BYTES
    if lanes < 1:
        return np.empty(0, np.int64)
    magic = data[_LANE_BYTES + MAGIC_AT :]
    windows = np.ndarray((lanes, _GUESS_WINDOW), np.uint8, magic, strides=(_LANE_BYTES, 1))
    row, column = np.nonzero(windows == 2)  # its magic
    start = (row + 1) * _LANE_BYTES + column
    likely = data[start] == 0
    start, row = start[likely], row[likely]
    length = size_fields(data)[start].astype(np.int64)
    after = start + LOG_OVERHEAD + length
    likely = (length >= _LEAST_SIZES[2]) & (after < limit)
    start, row, after = start[likely], row[likely], after[likely]
    likely = _is_likely(data, start) & _is_likely(data, after)
    start, row = start[likely], row[likely]
    first_in_row: NDArray[np.int64] = np.unique(row, return_index=True)[1]
    found: NDArray[np.int64] = start[first_in_row]
    return found


def _is_likely(data: NDArray[np.uint8], at: NDArray[np.int64]) -> NDArray[np.bool_]:
    """Whether a header of format 2 may lie there: high bytes that hardly any number of it needs."""
    likely: NDArray[np.bool_] = data[at + MAGIC_AT] == 2  # its magic
    for place in _HIGH_BYTES:
        likely &= data[at + place] == 0
    return likely


def _in_lock_step(
    data: NDArray[np.uint8], starts: NDArray[np.int64], limit: int
) -> tuple[NDArray[np.int64], int | None]:
    """Follow the chain from each start to the next start.

    Returns all positions, ascending, and the first start at which the chain from the one before
    does not arrive (None if it arrives at all): what comes after it means nothing.
    """
    lengths, step = size_fields(data), np.int64(LOG_OVERHEAD)
    position, end = starts, np.append(starts[1:], limit)
    lane = np.arange(starts.size)
    arrives = np.empty(starts.size, np.int64)
    passed = []
    while position.size:
        rows = np.empty((_STEPS, position.size), np.int64)
        for row in rows:
            row[:] = position
            # A lane that has arrived goes on a little, inside the data.
            position = np.minimum(position + lengths[position] + step, limit)
        inside = rows < end
        passed.append(rows[inside])
        # A length too small for any batch leads nowhere: the chain breaks where it stands.
        goes_on = inside[-1] & (lengths[rows[-1]] >= LEAST_SIZE) & (position < end)
        if goes_on.all():
            continue
        done = ~goes_on
        beyond = np.where(inside, _FAR, rows).min(axis=0)
        arrives[lane[done]] = np.minimum(beyond, position)[done]
        position, end, lane = position[goes_on], end[goes_on], lane[goes_on]
    missed = np.flatnonzero(arrives[:-1] != starts[1:])
    false_guess = int(starts[missed[0] + 1]) if missed.size else None
    return np.sort(np.concatenate(passed)), false_guess


def _judged(
    data: NDArray[np.uint8], start: NDArray[np.int64], first: int, size: int, last_offset: int
) -> Chain:
    """Return the headers at ``start`` up to the first that cannot be one."""
    headers = Headers.at(data, start, first)
    if not len(headers):
        return Chain(headers, first, clean=False)
    before = np.concatenate([[last_offset], headers.last_offset[:-1]])
    sound = (headers.magic >= 0) & (headers.magic <= 2)
    sound &= headers.size - LOG_OVERHEAD >= _LEAST_SIZES[np.where(sound, headers.magic, 0)]
    sound &= headers.position + headers.size <= size
    sound &= (headers.base_offset > before) & (headers.last_offset >= headers.base_offset)
    sound &= (headers.count >= 0) | (headers.magic < 2)
    sound &= headers.leader_epoch >= -1
    good = len(headers) if sound.all() else int(np.argmin(sound))
    end = int(headers.position[good - 1] + headers.size[good - 1]) if good else first
    return Chain(headers.take(slice(good)), end, clean=good == len(headers))
