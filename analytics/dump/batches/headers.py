"""Batch headers out of a buffer, all at once (``DefaultRecordBatch``, ``LegacyRecord``)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import numpy as np

from analytics.dump.records.raw_records import Batches

if TYPE_CHECKING:
    from numpy.typing import NDArray

LOG_OVERHEAD: Final = 12
"""Bytes of offset and size, which every format begins with; the size does not count them."""
MAGIC_AT: Final = 16
"""The format number is here in every format."""
SHORTEST_HEADER: Final = 17
"""Up to the format number."""
BATCH_HEADER: Final = 61
"""Bytes of a magic 2 header."""
SMALLEST: Final = np.array([26, 34, 61], np.int64)
"""Bytes of the smallest entry by format number: offset, size and a message of null key and value,
or a batch without records."""
MIN_RECORD: Final = 7
"""Bytes of the smallest magic 2 record: six fields of one byte, and the length."""

_CODEC_MASK: Final = 0x07
_LOG_APPEND_TIME: Final = 0x08
_TRANSACTIONAL: Final = 0x10
_CONTROL: Final = 0x20
_DELETE_HORIZON: Final = 0x40

_V2 = np.dtype(
    [
        ("base_offset", ">i8"),
        ("size", ">i4"),
        ("leader_epoch", ">i4"),
        ("magic", "i1"),
        ("crc", ">u4"),
        ("attributes", ">i2"),
        ("last_offset_delta", ">i4"),
        ("base_timestamp", ">i8"),
        ("max_timestamp", ">i8"),
        ("producer_id", ">i8"),
        ("producer_epoch", ">i2"),
        ("base_sequence", ">i4"),
        ("count", ">i4"),
    ]
)
_LEGACY = np.dtype(
    [
        ("offset", ">i8"),
        ("size", ">i4"),
        ("crc", ">u4"),
        ("magic", "i1"),
        ("attributes", "i1"),
        ("timestamp", ">i8"),
    ]
)


def gather(
    data: NDArray[np.uint8], starts: NDArray[np.int64], layout: np.dtype[Any]
) -> NDArray[Any]:
    """Return the fixed-size structs that begin at ``starts``; they end inside the buffer."""
    # A view whose items overlap: one copy per row, whatever the number of fields.
    width = layout.itemsize
    rows = np.ndarray((max(data.size - width + 1, 0),), f"V{width}", data, strides=(1,))
    return rows[starts].view(layout)


def gather_v2(data: NDArray[np.uint8], starts: NDArray[np.int64]) -> NDArray[Any]:
    """Return magic 2 headers as rows of big-endian fields."""
    return gather(data, starts, _V2)


def native(column: NDArray[Any]) -> NDArray[Any]:
    """Return a column of a gathered struct on its own, in the machine's byte order."""
    return column.astype(column.dtype.newbyteorder("="))


def read_headers(
    data: NDArray[np.uint8],
    starts: NDArray[np.int64],
    sizes: NDArray[np.int64],
    file_position: int,
) -> Batches:
    """Return the headers at ``starts``, which have a known format number.

    Args:
        data: A buffer that goes on at least `BATCH_HEADER` bytes after each start.
        starts: Where entries begin in it.
        sizes: Their bytes.
        file_position: Where in the file the buffer begins.
    """
    magic = data[starts + MAGIC_AT]
    if (magic == 2).all():
        return _magic_2(gather_v2(data, starts), starts + file_position, sizes)
    legacy = _legacy(gather(data, starts, _LEGACY), starts + file_position, sizes)
    newer = np.flatnonzero(magic == 2)
    batches = _magic_2(gather_v2(data, starts[newer]), starts[newer] + file_position, sizes[newer])
    return _merged(legacy, batches, newer)


def _magic_2(header: NDArray[Any], position: NDArray[np.int64], size: NDArray[np.int64]) -> Batches:
    attributes = native(header["attributes"])
    base_offset = native(header["base_offset"])
    horizon = (attributes & _DELETE_HORIZON) != 0
    base_timestamp = native(header["base_timestamp"])
    return Batches(
        position=position,
        size=size,
        magic=header["magic"].copy(),
        base_offset=base_offset,
        last_offset=base_offset + header["last_offset_delta"],
        leader_epoch=native(header["leader_epoch"]),
        attributes=attributes,
        codec=(attributes & _CODEC_MASK).astype(np.int8),
        count=native(header["count"]),
        producer_id=native(header["producer_id"]),
        producer_epoch=native(header["producer_epoch"]),
        is_transactional=(attributes & _TRANSACTIONAL) != 0,
        is_control=(attributes & _CONTROL) != 0,
        base_timestamp=base_timestamp,
        max_timestamp=native(header["max_timestamp"]),
        crc=native(header["crc"]),
        delete_horizon=np.where(horizon, base_timestamp, -1).astype(np.int64),
        timestamp_type=((attributes & _LOG_APPEND_TIME) != 0).astype(np.int8),
    )


def _legacy(header: NDArray[Any], position: NDArray[np.int64], size: NDArray[np.int64]) -> Batches:
    rows = position.size
    attributes = header["attributes"].astype(np.int16)
    magic = header["magic"].copy()
    codec = (attributes & _CODEC_MASK).astype(np.int8)
    offset = native(header["offset"])
    timed = magic == 1
    timestamp = np.where(timed, header["timestamp"], -1).astype(np.int64)
    by_broker = ((attributes & _LOG_APPEND_TIME) != 0).astype(np.int8)
    return Batches(
        position=position,
        size=size.copy(),
        magic=magic,
        base_offset=offset,
        last_offset=offset.copy(),
        leader_epoch=np.full(rows, -1, np.int32),
        attributes=attributes,
        codec=codec,
        count=np.where(codec == 0, 1, -1).astype(np.int32),
        producer_id=np.full(rows, -1, np.int64),
        producer_epoch=np.full(rows, -1, np.int16),
        is_transactional=np.zeros(rows, np.bool_),
        is_control=np.zeros(rows, np.bool_),
        base_timestamp=timestamp,
        max_timestamp=timestamp.copy(),
        crc=native(header["crc"]),
        delete_horizon=np.full(rows, -1, np.int64),
        timestamp_type=np.where(timed, by_broker, -1).astype(np.int8),
    )


def _merged(all_rows: Batches, newer: Batches, where: NDArray[np.int64]) -> Batches:
    for name, column in vars(all_rows).items():
        column[where] = getattr(newer, name)
    return all_rows
