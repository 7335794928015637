"""Topics that are not decoded: where their logs start and end, and their ids."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import pyarrow as pa
from crc32c import crc32c

from analytics.dump.batches.header_columns import HEADER_BYTES, LOG_APPEND_TIME, Headers
from analytics.dump.batches.walks import walk_segment
from analytics.dump.files.model import NOTHING_KNOWN
from analytics.dump.files.storage import ByteSource, join
from analytics.errors import InputUnreadableError

if TYPE_CHECKING:
    from collections.abc import Iterable

    from analytics.dump.files.model import Copy, PartitionCopy, SegmentFile

# Where logs of data topics end for who reads committed records only: the last stable offset.
#
# It is the first offset of the earliest open transaction, else the log's end (KIP-98). Which are
# open a producer snapshot says up to its offset, and behind it the headers of batches: a batch with
# data opens its producer's transaction, a control batch ends it. No record is read.
#
# A broker writes a producer snapshot when it starts a segment, and when it stops
# (``ProducerStateManager``, ``ProducerSnapshot.json``): version, CRC-32C of the rest, number of
# producers, and of each 46 bytes.

STABLE_ENDS = pa.schema(
    [
        ("topic", pa.string()),
        ("partition", pa.int32()),
        ("copy", pa.string()),
        ("log_end_offset", pa.int64()),
        ("last_stable_offset", pa.int64()),
        ("open_transactions", pa.int64()),
        ("producer_id", pa.int64()),
        ("reason", pa.string()),
    ]
)
"""Last stable offsets: the table `data_stable_ends`."""
MOST_WALKED: Final = 64 << 20
"""Bytes of a log whose headers are looked at; where a snapshot leaves more, nothing is told."""
TOO_LONG: Final = "more of the log than is looked at lies behind its last producer snapshot"
NO_BEGINNING: Final = "which transactions were open where the log begins no producer snapshot says"
NOT_WHOLE: Final = "a part of the log cannot be read"

SUFFIX: Final = ".snapshot"
_VERSION: Final = 1
_HEAD: Final = np.dtype([("version", ">i2"), ("crc", ">u4"), ("count", ">i4")])
_CHECKED_FROM: Final = 6
_PRODUCER: Final = np.dtype(
    [
        ("producer_id", ">i8"),
        ("epoch", ">i2"),
        ("last_sequence", ">i4"),
        ("last_offset", ">i8"),
        ("offset_delta", ">i4"),
        ("timestamp", ">i8"),
        ("coordinator_epoch", ">i4"),
        ("first_offset_of_transaction", ">i8"),
    ]
)


def stable_ends(copies: Iterable[Copy]) -> pa.Table:
    """Return the last stable offset of every log, in order of topic, partition and copy."""
    partitions = [each for copy in copies for each in copy.data_partitions]
    partitions.sort(key=lambda each: (each.topic, each.partition, each.copy))
    return pa.Table.from_pylist([_of(each) for each in partitions], STABLE_ENDS)


def _of(partition: PartitionCopy) -> dict[str, Any]:
    found = {name: getattr(partition, name) for name in ("topic", "partition", "copy")}
    logs = partition.logs
    end = end_of(logs[-1]) if logs else None
    if end is None:
        return {**found, "reason": NOT_WHOLE}
    begun, reason = _beginning(partition, end)
    if reason is None:
        open_, reason = _open_at_end(partition, begun[0], dict(begun[1]))
    if reason is not None:
        return {**found, "log_end_offset": end, "reason": reason}
    first = min(open_, key=lambda each: open_[each], default=None)
    return {
        **found,
        "log_end_offset": end,
        "last_stable_offset": end if first is None else open_[first],
        "open_transactions": len(open_),
        "producer_id": first,
    }


def _beginning(
    partition: PartitionCopy, end: int
) -> tuple[tuple[int, Mapping[int, int]], str | None]:
    """Return an offset and what was open there, by the latest snapshot that is sound."""
    for offset, name in sorted(partition.noted_ends, reverse=True):
        # One beyond the end is of a line that was cut off.
        if not name.endswith(SUFFIX) or offset > end:
            continue
        try:
            found = open_in_snapshot(join(partition.directory, name.rpartition("/")[2]))
        except InputUnreadableError:
            continue
        if found is not None:
            return (offset, found), None
    is_from_start = partition.logs[0].base_offset == 0 and not partition.lost_segments
    return (0, {}), None if is_from_start else NO_BEGINNING


def _open_at_end(
    partition: PartitionCopy, offset: int, open_: dict[int, int]
) -> tuple[dict[int, int], str | None]:
    """Return what is open at the end, or why that is not known."""
    logs = partition.logs
    ends = [*(each.base_offset for each in logs[1:]), None]
    behind = [
        each for each, after in zip(logs, ends, strict=True) if after is None or after > offset
    ]
    if sum(each.size for each in behind) > MOST_WALKED:
        return open_, TOO_LONG
    for segment in behind:
        try:
            walk = walk_segment(segment, NOTHING_KNOWN)
        except InputUnreadableError:
            return open_, NOT_WHOLE
        if walk.unreadable or walk.damages:
            return open_, NOT_WHOLE
        for producer, first, is_control in _in_transactions(walk.headers, offset):
            if is_control:
                open_.pop(producer, None)
            else:
                open_.setdefault(producer, first)
    return open_, None


def _in_transactions(headers: Headers, offset: int) -> Iterator[tuple[int, int, bool]]:
    """Yield producer, first offset and whether it is a marker, of batches from an offset on."""
    chosen = np.flatnonzero(headers.is_transactional & (headers.base_offset >= offset))
    yield from zip(
        headers.producer_id[chosen].tolist(),
        headers.base_offset[chosen].tolist(),
        headers.is_control[chosen].tolist(),
        strict=True,
    )


def open_in_snapshot(path: str) -> Mapping[int, int] | None:
    """Return first offsets of open transactions, by producer id.

    Returns:
        None where the file is not one of the known version, or not whole.

    Raises:
        InputUnreadableError: The file cannot be read.
    """
    with ByteSource(path) as source:
        data = source.bytes(0, source.size)
    if len(data) < _HEAD.itemsize:
        return None
    head = np.frombuffer(data, _HEAD, 1)[0]
    is_whole = len(data) == _HEAD.itemsize + int(head["count"]) * _PRODUCER.itemsize
    if not is_whole or head["version"] != _VERSION or head["crc"] != crc32c(data[_CHECKED_FROM:]):
        return None
    producers = np.frombuffer(data, _PRODUCER, offset=_HEAD.itemsize)
    first = producers["first_offset_of_transaction"]
    return {
        int(producer): int(offset)
        for producer, offset in zip(producers["producer_id"], first, strict=True)
        if offset >= 0
    }


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
        is_exact: The end was read from the last batch, not taken from a checkpoint.
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
    """Return where a copy of a partition starts and ends; its last file alone is looked into."""
    logs = partition.logs
    first = logs[0].base_offset if logs else 0
    end = end_of(logs[-1]) if logs else None
    known = max(partition.high_watermark or 0, logs[-1].base_offset if logs else 0)
    return DataOffsets(
        topic=partition.topic,
        partition=partition.partition,
        copy=partition.copy,
        topic_id=partition.topic_id,
        log_start_offset=_start_of(partition, first),
        log_end_offset=max(known, end or 0),
        is_exact=end is not None,
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
