"""Where logs of data topics end for who reads committed records only: the last stable offset.

It is the first offset of the earliest open transaction, else the log's end (KIP-98). Which are
open a producer snapshot says up to its offset, and behind it the headers of batches: a batch with
data opens its producer's transaction, a control batch ends it. No record is read.

A broker writes a producer snapshot when it starts a segment, and when it stops
(``ProducerStateManager``, ``ProducerSnapshot.json``): version, CRC-32C of the rest, number of
producers, and of each 46 bytes.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import pyarrow as pa
from crc32c import crc32c

from analytics.dump.batches.header_columns import Headers
from analytics.dump.batches.walks import walk_segment
from analytics.dump.files.data_topics import end_of
from analytics.dump.files.model import NOTHING_KNOWN
from analytics.dump.files.storage import ByteSource, join
from analytics.errors import InputUnreadableError

if TYPE_CHECKING:
    from analytics.dump.files.model import Copy, PartitionCopy

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
