"""Segment files walked over their headers: what is there, and what cannot be a batch."""

from __future__ import annotations

import mmap
import sys
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from analytics.dump.batches.damage import Damage, Tail, TailKind
from analytics.dump.batches.header_columns import HEADER_BYTES, UNKNOWN_COUNT, Headers
from analytics.dump.batches.header_walk import walk_chain
from analytics.dump.batches.layout import lay_out
from analytics.dump.batches.log_bounds import LogSense
from analytics.dump.copies.epochs import NO_EPOCH, EpochLine, are_plausible, epoch_line
from analytics.dump.files.byte_source import ByteSource
from analytics.dump.files.model import NOTHING_KNOWN
from analytics.dump.files.storage import is_uri, storage_of
from analytics.errors import InputUnreadableError
from schemas import COMPACTED_TOPICS

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from analytics.dump.files.model import PartitionCopy, SegmentFile

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
    complete_from = partition.first_dirty_offset
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
