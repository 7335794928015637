"""Logs of data topics: where they end for who reads committed records, when they were written."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import numpy as np
import pyarrow as pa
from crc32c import crc32c

from analytics.dump.batches.headers import Headers
from analytics.dump.batches.walks import walk_segment
from analytics.dump.files.data_topics import end_of, last_batch_of
from analytics.dump.files.model import NOTHING_KNOWN
from analytics.dump.files.storage import ByteSource, storage_of
from analytics.epoch_times import LAST_MS, are_times, time_of
from analytics.errors import InputUnreadableError
from analytics.locations import base_name, is_uri, join
from analytics.time_columns import TIMESTAMP, times_of

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from analytics.dump.files.data_topics import LastBatch
    from analytics.dump.files.model import Copy, PartitionCopy, SegmentFile

# Where logs of data topics end for who reads committed records only: the last stable offset.
#
# It is the first offset of the earliest open transaction, else the log's end (KIP-98). Which are
# open a producer snapshot says up to its offset, and behind it the headers of batches: a batch
# with data opens its producer's transaction, a control batch ends it. No record is read.
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


# When the logs of data topics were written: by their indexes and the last batch of each file.
#
# No record is read. What tells when a log had grown to where is a segment's `.timeindex`, the
# header of its last batch, and where the next segment begins.
#
# Each entry of a `.timeindex` says that up to its offset no record is newer than its timestamp,
# and that the record at the offset, or one of its batch, is that old (``TimeIndex.maybeAppend``).
# Kafka adds one every few kilobytes, where the timestamp is a new one, and a last one when the
# segment is closed. The file of the segment that is written is as long as it may become, and ends
# in zeros.

_LOG: Final = ".log"
_WHOSE: Final = [("topic", pa.string()), ("partition", pa.int32()), ("copy", pa.string())]
SEGMENTS = pa.schema(
    [
        *_WHOSE,
        ("base_offset", pa.int64()),
        ("size_bytes", pa.int64()),
        ("largest_timestamp", TIMESTAMP),
        ("is_largest", pa.bool_()),
    ]
)
"""Files of data topics: the table `data_segments`."""
TIMES = pa.schema(
    [
        *_WHOSE,
        ("timestamp", TIMESTAMP),
        ("offset", pa.int64()),
        ("is_append_time", pa.bool_()),
    ]
)
"""Which timestamps records had reached, and where: the table `data_log_times`."""

_SUFFIX: Final = ".timeindex"
_ENTRY: Final = np.dtype([("timestamp", ">i8"), ("offset", ">i4")])
_READ_WHOLE: Final = 64 << 10
_POINTS: Final = 128
"""Of a longer index: so many entries, evenly spaced, tell when a segment was written."""


def data_segments_and_times(copies: Iterable[Copy]) -> tuple[pa.Table, pa.Table]:
    """Return the tables of all data partitions: `SEGMENTS` and `TIMES`, in order of their keys."""
    segments, times = [SEGMENTS.empty_table()], [TIMES.empty_table()]
    partitions = [each for copy in copies for each in copy.data_partitions]
    for partition in sorted(partitions, key=lambda each: (each.topic, each.partition, each.copy)):
        of_files, of_times = _of_partition(partition)
        segments.append(of_files)
        times += of_times
    return pa.concat_tables(segments), pa.concat_tables(times)


def _of_partition(partition: PartitionCopy) -> tuple[pa.Table, list[pa.Table]]:
    files = list(_files(partition))
    # What clock a topic goes by, its newest batch says: closed files with an index are not opened.
    is_append_time = bool(files) and files[-1].is_append_time
    rows = [
        {
            "topic": partition.topic,
            "partition": partition.partition,
            "copy": partition.copy,
            "base_offset": each.segment.base_offset,
            "size_bytes": each.segment.size,
            "largest_timestamp": time_of(each.largest),
            "is_largest": each.is_largest,
        }
        for each in files
    ]
    whole = pa.Table.from_pylist(rows, SEGMENTS)
    return whole, [_times(partition, each.times, is_append_time) for each in files]


class _File:
    """What one file of a log tells."""

    def __init__(
        self,
        segment: SegmentFile,
        indexed: IndexedTimes,
        last: LastBatch | None,
        *,
        is_closed: bool,
    ) -> None:
        self.segment = segment
        timestamps, offsets = indexed
        newest = last.max_timestamp if last is not None else None
        if last is not None and newest is not None and last.last_offset >= segment.base_offset:
            beyond = len(offsets) == 0 or last.last_offset > int(offsets[-1])
            if beyond and (len(timestamps) == 0 or newest >= int(timestamps[-1])):
                timestamps = np.append(timestamps, newest)
                offsets = np.append(offsets, last.last_offset)
        self.times = IndexedTimes(timestamps, offsets)
        self.largest = int(timestamps[-1]) if len(timestamps) else None
        self.is_append_time = last is not None and last.is_append_time
        # Kafka writes a last entry when it closes a segment; by the broker's clock none is older.
        self.is_largest = self.largest is not None and (
            self.is_append_time or (is_closed and len(indexed.offsets) > 0)
        )


def _files(partition: PartitionCopy) -> Iterator[_File]:
    logs = partition.logs
    there = {each.name for each in storage_of(partition.directory).list(partition.directory)}
    for place, segment in enumerate(logs):
        is_closed = place + 1 < len(logs)
        indexed = _indexed(segment, there)
        is_told = is_closed and len(indexed.offsets) > 0
        last = None if is_told else last_batch_of(segment, may_walk=not is_closed)
        yield _File(segment, indexed, last, is_closed=is_closed)


def _indexed(segment: SegmentFile, there: set[str]) -> IndexedTimes:
    nothing = IndexedTimes(np.empty(0, np.int64), np.empty(0, np.int64))
    name = base_name(segment.path)
    index = name.removesuffix(_LOG) + _SUFFIX
    if not name.endswith(_LOG) or index not in there:
        return nothing
    try:
        return read_time_index(segment.path.removesuffix(_LOG) + _SUFFIX, segment.base_offset)
    except InputUnreadableError:
        return nothing


def _times(partition: PartitionCopy, times: IndexedTimes, is_append_time: bool) -> pa.Table:  # noqa: FBT001
    count = len(times.offsets)
    columns = [
        pa.array([partition.topic] * count, pa.string()),
        pa.array([partition.partition] * count, pa.int32()),
        pa.array([partition.copy] * count, pa.string()),
        times_of(times.timestamps),
        pa.array(times.offsets),
        pa.array([is_append_time] * count, pa.bool_()),
    ]
    return pa.table(columns, schema=TIMES)


class IndexedTimes(NamedTuple):
    """Entries, ascending: timestamps in epoch milliseconds, and offsets."""

    timestamps: NDArray[np.int64]
    offsets: NDArray[np.int64]


def read_time_index(path: str, base_offset: int) -> IndexedTimes:
    """Return entries of an index: all of a short one, some of a long one, the last one always.

    What does not ascend, or has a time that no calendar has, is no entry: what follows it is left
    out.

    Raises:
        InputUnreadableError: The file cannot be read.
    """
    with ByteSource(path) as source:
        count = source.size // _ENTRY.itemsize
        # Over a network one long read costs less than many short ones.
        if source.size <= _READ_WHOLE or is_uri(path):
            entries = _entries(source, 0, count)
        else:
            written = _entry_count(source, count)
            wanted = np.unique(np.linspace(0, max(written - 1, 0), _POINTS).astype(np.int64))
            parts = [_entries(source, place, 1) for place in wanted.tolist()]
            entries = np.concatenate(parts)
    timestamps, relative = entries["timestamp"].astype(np.int64), entries["offset"].astype(np.int64)
    ascends = (np.diff(timestamps) > 0) & (np.diff(relative) > 0)
    ascends &= are_times(timestamps[1:])
    is_first = len(timestamps) > 0 and bool(0 < timestamps[0] <= LAST_MS and relative[0] >= 0)
    kept = int(np.argmin(np.r_[ascends, False])) + 1 if is_first else 0
    return IndexedTimes(timestamps[:kept], relative[:kept] + base_offset)


def _entries(
    source: ByteSource, first: int, count: int
) -> np.ndarray[tuple[int], np.dtype[np.void]]:
    size = _ENTRY.itemsize
    return np.frombuffer(source.bytes(first * size, count * size), _ENTRY)


def _entry_count(source: ByteSource, count: int) -> int:
    """Return how many entries stand before the zeros at the end."""
    low, high = 0, count
    while low < high:
        middle = (low + high) // 2
        if _entries(source, middle, 1)["timestamp"][0] > 0:
            low = middle + 1
        else:
            high = middle
    return low
