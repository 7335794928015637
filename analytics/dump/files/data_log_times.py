"""When the logs of data topics were written: by their indexes and the last batch of each file.

No record is read. What tells when a log had grown to where is a segment's `.timeindex`, the header
of its last batch, and where the next segment begins.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Final

import numpy as np
import pyarrow as pa

from analytics.dump.files.data_topics import last_batch_of
from analytics.dump.files.storage import storage_of
from analytics.dump.files.time_index import SUFFIX, IndexedTimes, read_time_index
from analytics.epoch_times import time_of
from analytics.errors import InputUnreadableError
from analytics.time_columns import TIMESTAMP, times_of

if TYPE_CHECKING:
    from analytics.dump.files.data_topics import LastBatch
    from analytics.dump.files.model import Copy, PartitionCopy, SegmentFile

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
    name = segment.path.rpartition("/")[2]
    index = name.removesuffix(_LOG) + SUFFIX
    if not name.endswith(_LOG) or index not in there:
        return nothing
    try:
        return read_time_index(segment.path.removesuffix(_LOG) + SUFFIX, segment.base_offset)
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
