"""A log's producer snapshot: which transactions were open in it when the log had come to an offset.

A broker writes one when it starts a segment, and when it stops (``ProducerStateManager``,
``ProducerSnapshot.json``): version, CRC-32C of the rest, number of producers, and of each 46 bytes.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np
from crc32c import crc32c

from analytics.dump.files.byte_source import ByteSource

if TYPE_CHECKING:
    from collections.abc import Mapping

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
