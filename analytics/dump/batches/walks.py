"""Segment files walked over their headers: what is there, and what cannot be a batch."""

from __future__ import annotations

import mmap
import sys
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from analytics.dump.batches.batch_bytes import (
    LEAST_SIZE,
    Damage,
    Tail,
    TailKind,
    chain_starts,
    size_fields,
)
from analytics.dump.batches.headers import (
    HEADER_BYTES,
    LOG_OVERHEAD,
    MAGIC_AT,
    SMALLEST,
    UNKNOWN_COUNT,
    Headers,
)
from analytics.dump.batches.layout import lay_out
from analytics.dump.batches.log_bounds import LogSense
from analytics.dump.copies.leadership import NO_EPOCH, EpochLine, are_plausible, epoch_line
from analytics.dump.files.model import NOTHING_KNOWN
from analytics.dump.files.storage import ByteSource, storage_of
from analytics.errors import InputUnreadableError
from analytics.locations import is_uri
from schemas import COMPACTED_TOPICS

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from numpy.typing import NDArray

    from analytics.dump.files.model import PartitionCopy, SegmentFile

    Fill = Callable[[memoryview, int], None]

# The chain of batch headers of a file, found without reading what lies between them.
#
# The chain is sequential: a batch's length says where the next begins. A loop must be compiled to
# be fast (`batch_chain`), and loading a compiler takes longer than this whole walk. So it is
# followed at many places at once: a header is guessed every 128 KiB, all guesses are followed in
# lock-step, and a guess counts only when the chain from the file's first byte arrives at it
# exactly. What is no clean chain (a broken length, a magic unknown, offsets that go back) is not
# judged here.

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


_ZEROS_READ = 1 << 20


@dataclass(frozen=True)
class SegmentWalk:
    """The headers of one file.

    Attributes:
        segment: The file as it was listed.
        parts: Its batches, in pieces; in a snapshot of the metadata log offsets count from 0.
        damages: What cannot be batches.
        tail: Bytes after the last batch, None where there are none.
        changed: The file is not as it was listed.
        unreadable: Why the system refused to read it, None where it did not.
        sense: What its offsets can be.
    """

    segment: SegmentFile
    parts: tuple[Headers, ...]
    damages: tuple[Damage, ...] = ()
    tail: Tail | None = None
    changed: bool = False
    unreadable: str | None = None
    sense: LogSense = NOTHING_KNOWN

    @cached_property
    def headers(self) -> Headers:
        """All batches."""
        return Headers.concatenate([Headers.none(), *self.parts])


@dataclass(frozen=True)
class CopyLog:
    """One copy of a partition, walked: its log, and its snapshots apart.

    Attributes:
        partition: The copy, as it was listed.
        walks: Its log.
        checkpoints: Its snapshots.
        witnessed_epoch: The newest leader epoch in which its broker led or was in sync, by the
            metadata log; -1 where that is not known.
    """

    partition: PartitionCopy
    walks: tuple[SegmentWalk, ...]
    checkpoints: tuple[SegmentWalk, ...] = ()
    witnessed_epoch: int = NO_EPOCH

    @cached_property
    def headers(self) -> Headers:
        """All batches of the log, in the order of its files.

        A compressed entry of magic 0 or 1 is taken to begin where the one before it ends: only its
        last offset is in its header.
        """
        parts = [part for walk in self.walks for part in walk.parts]
        found = Headers.concatenate([Headers.none(), *parts])
        unknown = np.flatnonzero(found.count == UNKNOWN_COUNT)
        if unknown.size:
            before = np.concatenate(
                [[self.walks[0].segment.base_offset], found.last_offset[:-1] + 1]
            )
            base = found.base_offset.copy()
            base[unknown] = np.minimum(before[unknown], base[unknown])
            return replace(found, base_offset=base)
        return found

    @cached_property
    def file(self) -> NDArray[np.int64]:
        """For each batch of `headers`, the number of its file in ``walks``."""
        return np.repeat(np.arange(len(self.walks)), np.diff(self._edges))

    def of_file(self, number: int) -> Headers:
        """Return the batches of one file of ``walks``."""
        return self.headers.take(slice(self._edges[number], self._edges[number + 1]))

    @cached_property
    def _edges(self) -> list[int]:
        """Rows of `headers` at which files begin, and the end of the last."""
        sizes = [sum(map(len, walk.parts)) for walk in self.walks]
        return [0, *np.cumsum(sizes, dtype=np.int64).tolist()]

    @cached_property
    def first_offset(self) -> int:
        """The first batch's base offset; that of the first file where there is no batch."""
        if len(self.headers):
            return int(self.headers.base_offset.min())
        return self.walks[0].segment.base_offset if self.walks else 0

    @cached_property
    def end_offset(self) -> int:
        """One more than the last offset there is."""
        last = int(self.headers.last_offset.max()) + 1 if len(self.headers) else 0
        return max([last, *(walk.segment.base_offset for walk in self.walks)])

    @cached_property
    def epochs(self) -> EpochLine:
        """Leader epochs, of the batches and of the checkpoint beside them."""
        batches = self.headers
        known = epoch_line(
            self.partition.leader_epochs,
            batches.leader_epoch,
            batches.base_offset,
            self.end_offset,
        )
        return replace(known, witnessed=self.witnessed_epoch)

    @property
    def name(self) -> str:
        """The copy's name."""
        return self.partition.copy


def walk_copy(
    partition: PartitionCopy, *, check_crc: bool = False, may_map: bool = False
) -> CopyLog:
    """Walk all files of one copy of a partition."""
    walks = [
        walk_segment(segment, sense, check_crc=check_crc, may_map=may_map)
        for segment, sense in zip(partition.logs, log_senses(partition), strict=True)
    ]
    checkpoints = [
        walk_segment(each, NOTHING_KNOWN, check_crc=check_crc) for each in partition.checkpoints
    ]
    return CopyLog(partition, tuple(walks), tuple(checkpoints))


def log_senses(partition: PartitionCopy) -> list[LogSense]:
    """Return, for each file of the log, what its offsets can be."""
    logs = partition.logs
    complete_from = partition.intact_from
    if partition.topic not in COMPACTED_TOPICS:
        complete_from = 0
    ends = [*(segment.base_offset for segment in logs[1:]), None]
    return [
        LogSense(segment.base_offset, end, complete_from, partition.leader_epochs)
        for segment, end in zip(logs, ends, strict=False)
    ]


def walk_segment(
    segment: SegmentFile, sense: LogSense, *, check_crc: bool = False, may_map: bool = False
) -> SegmentWalk:
    """Walk one file: along the chain of lengths while it is clean, else with every doubt.

    Args:
        segment: The file as it was listed.
        sense: What its offsets can be.
        check_crc: Sum over every batch; without, only where the chain breaks.
        may_map: Map the file instead of reading it. A file that shrinks meanwhile ends the
            process: only for processes that may end.
    """
    try:
        walk = _walked(segment, sense, check_crc=check_crc, may_map=may_map)
    except InputUnreadableError as error:
        walk = SegmentWalk(segment, (), unreadable=str(error))
    now = storage_of(segment.path).entry(segment.path)
    changed = now is None or (now.size, now.modified) != (segment.size, segment.modified)
    return replace(walk, changed=changed, sense=sense)


def _walked(
    segment: SegmentFile, sense: LogSense, *, check_crc: bool, may_map: bool
) -> SegmentWalk:
    before = storage_of(segment.path).entry(segment.path)
    size = before.size if before else 0
    walk = _along_the_chain(segment, size, sense, may_map=may_map)
    if walk is None or check_crc:
        doubted = _with_every_doubt(segment, size, sense, check_crc=check_crc)
        # Where nothing is wrong the chain knows more: the time of each batch's first record.
        walk = walk if walk is not None and not doubted.damages else doubted
    return walk


def _along_the_chain(
    segment: SegmentFile, size: int, sense: LogSense, *, may_map: bool
) -> SegmentWalk | None:
    """Return the file's batches, and zeros after them as its tail; None if there is more to it."""
    parts, end = [], 0
    with ByteSource(segment.path) as source:
        mapped = _map(segment.path, size) if may_map else None
        for chain in walk_chain(source.fill, size, mapped=mapped):
            parts += [chain.headers] if len(chain.headers) else []
            end = chain.end
            if not chain.clean:
                break
        if end < size and not _is_zero(source, end, size):
            return None
    if parts and not (
        parts[0].base_offset[0] >= sense.low
        and parts[-1].last_offset[-1] < sense.far
        and are_plausible(parts, sense.leader_epochs)
    ):
        return None
    tail = Tail(end, size - end, TailKind.PREALLOCATED) if end < size else None
    return SegmentWalk(segment, tuple(parts), (), tail)


def _map(path: str, size: int) -> NDArray[np.uint8] | None:
    """Return a local file's bytes without reading them; None where that cannot be done."""
    if sys.platform != "linux" or is_uri(path) or not size:
        return None
    flags = mmap.MAP_SHARED | mmap.MAP_POPULATE
    try:
        with open(path, "rb") as file:  # noqa: PTH123 - for its descriptor
            mapped = mmap.mmap(file.fileno(), size, flags, mmap.PROT_READ)
    except (OSError, ValueError):
        return None
    return np.frombuffer(mapped, np.uint8)


def _is_zero(source: ByteSource, start: int, end: int) -> bool:
    # Few zeros may be the end of something else.
    if end - start < HEADER_BYTES:
        return False
    return not any(
        source.array(position, min(_ZEROS_READ, end - position)).any()
        for position in range(start, end, _ZEROS_READ)
    )


def _with_every_doubt(
    segment: SegmentFile, size: int, sense: LogSense, *, check_crc: bool
) -> SegmentWalk:
    with ByteSource(segment.path) as source:
        layout = lay_out(source, 0, size, sense, check_crc=check_crc)
    headers = Headers.of_batches(layout.batches)
    parts = (headers,) if len(headers) else ()
    return SegmentWalk(segment, parts, tuple(layout.damages), layout.tail)
