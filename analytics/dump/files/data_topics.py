"""Topics that are not decoded: where their logs start and end, and their ids."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from analytics.dump.batches.headers import HEADER_BYTES, LOG_APPEND_TIME, Headers
from analytics.dump.batches.walks import walk_segment
from analytics.dump.files.model import NOTHING_KNOWN
from analytics.dump.files.storage import ByteSource
from analytics.errors import InputUnreadableError

if TYPE_CHECKING:
    from collections.abc import Iterable

    from analytics.dump.files.model import Copy, PartitionCopy, SegmentFile

_WALKED_WHOLE = 4 << 20
_TAIL_BYTES = 1 << 20
_TRIED = 64
_SHORTEST = 49  # length of a magic 2 batch without records


@dataclass(frozen=True)
class DataTopic:
    """A topic as directories name it.

    Attributes:
        topic: Its name.
        topic_id: 22 characters, None where no directory has a ``partition.metadata``.
        partitions: The numbers that some copy holds.
    """

    topic: str
    topic_id: str | None
    partitions: tuple[int, ...]


@dataclass(frozen=True)
class DataOffsets:
    """Where one copy of a partition starts and ends.

    Attributes:
        topic: The topic's name.
        partition: The partition's number.
        copy: Whose.
        topic_id: 22 characters, None where the directory does not name it.
        log_start_offset: From the checkpoint, else the first file's base offset; None where an
            earlier leader epoch shows that there are files before it.
        log_end_offset: Last offset + 1; a lower bound where ``is_exact`` is false.
        is_exact: The end was read from the last batch, and no checkpoint says that there is more.
        leader_epochs: (epoch, first offset), from ``leader-epoch-checkpoint``.
    """

    topic: str
    partition: int
    copy: str
    topic_id: str | None
    log_start_offset: int | None
    log_end_offset: int
    is_exact: bool
    leader_epochs: tuple[tuple[int, int], ...] = ()


def data_topics(copies: Iterable[Copy]) -> list[DataTopic]:
    """Return the topics of all copies, by name and id: one that was born again is there twice."""
    found: dict[tuple[str, str], set[int]] = defaultdict(set)
    for copy in copies:
        for each in copy.data_partitions:
            found[each.topic, each.topic_id or ""].add(each.partition)
    return [
        DataTopic(topic, topic_id or None, tuple(sorted(numbers)))
        for (topic, topic_id), numbers in sorted(found.items())
    ]


def data_offsets(partition: PartitionCopy) -> DataOffsets:
    """Return where a copy of a partition starts and ends; its last file alone is looked into.

    No log ends before its high watermark. Where a checkpoint says so, either the files were copied
    before it, or it is that of an earlier topic of the name: a broker that is killed leaves it. The
    end of the files is what both allow, and is not exact.
    """
    logs = partition.logs
    first = logs[0].base_offset if logs else 0
    end = end_of(logs[-1]) if logs else None
    checkpointed = partition.high_watermark or 0
    begun = logs[-1].base_offset if logs else 0
    return DataOffsets(
        topic=partition.topic,
        partition=partition.partition,
        copy=partition.copy,
        topic_id=partition.topic_id,
        log_start_offset=_start_of(partition, first),
        log_end_offset=max(checkpointed, begun) if end is None else end,
        is_exact=end is not None and end >= checkpointed,
        leader_epochs=partition.leader_epochs,
    )


def _start_of(partition: PartitionCopy, first: int) -> int | None:
    """Return where a log starts.

    The checkpoint names only logs that start within a file. Brokers let go of leader epochs that
    end below the log start, and begin the first one that is left there
    (``LeaderEpochFileCache.truncateFromStart``): one that begins before the first file is of
    records that the dump lacks.
    """
    told = partition.log_start_offset or 0
    begun = min((start for _, start in partition.leader_epochs), default=first)
    return max(first, told) if told >= first or begun >= first else None


@dataclass(frozen=True)
class LastBatch:
    """The last batch of a file.

    Attributes:
        last_offset: Of its last record; the file's base offset - 1 where it holds none.
        max_timestamp: Of its newest record, in epoch milliseconds; None where it has no times.
        is_append_time: The broker's clock said so, not the producer's.
    """

    last_offset: int
    max_timestamp: int | None = None
    is_append_time: bool = False

    @classmethod
    def of(cls, headers: Headers) -> LastBatch:
        """Take the last of some headers."""
        newest = int(headers.max_timestamp[-1])
        return cls(
            int(headers.last_offset[-1]),
            newest if newest >= 0 else None,
            is_append_time=bool(headers.attributes[-1] & LOG_APPEND_TIME),
        )


def end_of(segment: SegmentFile) -> int | None:
    """Return a file's last offset + 1, its base offset where it is empty; None if unreadable."""
    last = last_batch_of(segment)
    return None if last is None else last.last_offset + 1


def last_batch_of(segment: SegmentFile, *, may_walk: bool = True) -> LastBatch | None:
    """Return a file's last batch; None if unreadable.

    Of a large file the end is read: a batch is guessed there, and believed when the chain from it
    arrives at the file's last byte. Where none is found, the file is walked if it may be.
    """
    try:
        if segment.size > _WALKED_WHOLE:
            found = _end_of_tail(segment)
            if found is not None or not may_walk:
                return found
        walk = walk_segment(segment, NOTHING_KNOWN)
    except InputUnreadableError:
        return None
    if walk.unreadable:
        return None
    headers = walk.headers
    return LastBatch.of(headers) if len(headers) else LastBatch(segment.base_offset - 1)


def _end_of_tail(segment: SegmentFile) -> LastBatch | None:
    with ByteSource(segment.path) as source:
        position = max(source.size - _TAIL_BYTES, 0)
        size = source.size - position
        data = source.array(position, size)
    content = data[:size]
    starts = np.flatnonzero(content[16:-HEADER_BYTES] == 2)  # their magic
    starts = starts[content[starts] == 0]
    for start in starts[:_TRIED].tolist():
        last = _last_of_chain(data, start, size)
        if last is not None and last.last_offset >= segment.base_offset:
            return last
    return None


def _last_of_chain(
    data: np.ndarray[tuple[int], np.dtype[np.uint8]], start: int, size: int
) -> LastBatch | None:
    """Return the last of the batches from ``start`` on, None if they are none."""
    positions = []
    while start + HEADER_BYTES <= size:
        length = int.from_bytes(data[start + 8 : start + 12].tobytes(), signed=True)
        if length < _SHORTEST or data[start + 16] != 2:
            return None
        positions.append(start)
        start += 12 + length
    if start != size or len(positions) < 2:
        return None
    headers = Headers.at(data, np.array(positions, np.int64), 0)
    ascending = bool((headers.base_offset[1:] > headers.last_offset[:-1]).all())
    return LastBatch.of(headers) if ascending else None
