"""Batch headers out of a buffer, all at once (``DefaultRecordBatch``, ``LegacyRecord``).

The batch headers of a segment, as columns: one row a batch, at the same place in every array.
"""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Any, Final, Self

import numpy as np

from analytics.epoch_times import are_times

if TYPE_CHECKING:
    from collections.abc import Sequence

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


HEADER_BYTES = 61
UNKNOWN_COUNT = -1

# DefaultRecordBatch; big-endian.
_MAGIC_2 = np.dtype(
    [
        ("base_offset", ">i8"),
        ("length", ">i4"),
        ("leader_epoch", ">i4"),
        ("magic", "i1"),
        ("crc", ">u4"),
        ("attributes", ">i2"),
        ("last_delta", ">i4"),
        ("base_timestamp", ">i8"),
        ("max_timestamp", ">i8"),
        ("producer_id", ">i8"),
        ("producer_epoch", ">i2"),
        ("base_sequence", ">i4"),
        ("count", ">i4"),
    ]
)

# LegacyRecord in a LogEntry: the timestamp is there in magic 1 only.
_MAGIC_0_1 = np.dtype(
    {
        "names": ["crc", "attributes", "timestamp"],
        "formats": [">u4", "i1", ">i8"],
        "offsets": [12, 17, 18],
        "itemsize": HEADER_BYTES,
    }
)
CODEC_MASK = 0x07
LOG_APPEND_TIME = 0x08
TRANSACTIONAL = 0x10
CONTROL = 0x20
DELETE_HORIZON = 0x40


@dataclass(frozen=True)
class BatchRows:
    """What is known of batches; what it is, the fields of those who inherit say.

    Attributes:
        position: Byte position in the file.
    """

    position: NDArray[np.int64]

    def __len__(self) -> int:
        return self.position.size

    def take(self, rows: NDArray[Any] | slice) -> Self:
        """Return the given rows (indices, a mask or a slice)."""
        return type(self)(*(getattr(self, each.name)[rows] for each in fields(self)))

    @classmethod
    def concatenate(cls, parts: Sequence[Self]) -> Self:
        """Return the rows of all parts; at least one part."""
        parts = [part for part in parts if len(part)] or list(parts[:1])
        if len(parts) == 1:
            return parts[0]
        names = [each.name for each in fields(cls)]
        return cls(*(np.concatenate([getattr(part, name) for part in parts]) for name in names))


@dataclass(frozen=True)
class Batches(BatchRows):
    """Batch headers in file order, one row a batch (``RecordBatch``, ``LegacyRecord``).

    An uncompressed magic 0 or 1 message is a batch of one record. What a compressed one holds is
    seen by decompressing only: in a walk over headers its ``base_offset`` is its last offset and
    its ``count`` is -1.

    Attributes:
        size: Bytes of the whole batch in the file.
        magic: Message format 0, 1 or 2.
        base_offset: First offset; in magic 2 also that of a record that compaction removed.
        last_offset: Last offset, likewise.
        leader_epoch: Partition leader epoch, -1 none (magic 0 and 1) or not to be believed.
        attributes: As stored.
        codec: 0 none, 1 gzip, 2 snappy, 3 lz4, 4 zstd.
        count: Records.
        producer_id: -1 none.
        producer_epoch: -1 none.
        is_transactional: Part of a transaction.
        is_control: Markers, not data.
        base_timestamp: Milliseconds that the records' timestamps are relative to, -1 none.
        max_timestamp: Milliseconds, -1 none.
        crc: As stored: CRC-32C (magic 2) or CRC-32.
        delete_horizon: Milliseconds from which tombstones may go (KIP-534), -1 none.
        timestamp_type: 0 set by the producer, 1 by the broker, -1 none (magic 0).
    """

    size: NDArray[np.int64]
    magic: NDArray[np.int8]
    base_offset: NDArray[np.int64]
    last_offset: NDArray[np.int64]
    leader_epoch: NDArray[np.int32]
    attributes: NDArray[np.int16]
    codec: NDArray[np.int8]
    count: NDArray[np.int32]
    producer_id: NDArray[np.int64]
    producer_epoch: NDArray[np.int16]
    is_transactional: NDArray[np.bool_]
    is_control: NDArray[np.bool_]
    base_timestamp: NDArray[np.int64]
    max_timestamp: NDArray[np.int64]
    crc: NDArray[np.uint32]
    delete_horizon: NDArray[np.int64]
    timestamp_type: NDArray[np.int8]

    @property
    def end(self) -> NDArray[np.int64]:
        """Byte position after each batch."""
        return self.position + self.size


@dataclass(frozen=True)
class Headers(BatchRows):
    """Batch headers in file order, one element a batch.

    Attributes:
        size: Bytes of the whole batch, header included.
        magic: 0, 1 or 2.
        base_offset: Of the first record there ever was; of a compressed magic 0/1 entry that
            cannot be told from its header, and this is the last offset too.
        last_offset: Of the last record there ever was.
        leader_epoch: -1 in magic 0 and 1.
        attributes: As stored.
        count: Records the header claims; `UNKNOWN_COUNT` for a compressed magic 0/1 entry.
        first_timestamp: Milliseconds; -1 where the header has none, or one that no calendar has.
            In a batch with a delete horizon the header gives the last one only, and this is that.
        max_timestamp: Milliseconds, -1 likewise.
        producer_id: -1 none.
        crc: As stored.
    """

    size: NDArray[np.int64]
    magic: NDArray[np.int8]
    base_offset: NDArray[np.int64]
    last_offset: NDArray[np.int64]
    leader_epoch: NDArray[np.int32]
    attributes: NDArray[np.int16]
    count: NDArray[np.int32]
    first_timestamp: NDArray[np.int64]
    max_timestamp: NDArray[np.int64]
    producer_id: NDArray[np.int64]
    crc: NDArray[np.uint32]

    @classmethod
    def none(cls) -> Self:
        """Return no batches, with the right types."""
        return cls.at(np.zeros(HEADER_BYTES, np.uint8), np.empty(0, np.int64), 0)

    @classmethod
    def at(cls, data: NDArray[np.uint8], start: NDArray[np.int64], first_position: int) -> Self:
        """Read the headers that begin at ``start`` in ``data``.

        Args:
            data: At least `HEADER_BYTES` more than the last start.
            start: Positions in ``data``.
            first_position: Where ``data`` begins in the file.
        """
        view = np.ndarray((data.size - HEADER_BYTES + 1,), f"V{HEADER_BYTES}", data, strides=(1,))
        raw = view[start]
        two = raw.view(_MAGIC_2)
        base = two["base_offset"].astype(np.int64)
        attributes = two["attributes"].astype(np.int16)
        max_timestamp = _plausible_times(two["max_timestamp"])
        has_horizon = (attributes & DELETE_HORIZON) != 0
        first_timestamp = np.where(
            has_horizon, max_timestamp, _plausible_times(two["base_timestamp"])
        )
        headers = cls(
            position=start + first_position,
            size=two["length"].astype(np.int64) + 12,
            magic=two["magic"].astype(np.int8),
            base_offset=base,
            last_offset=base + two["last_delta"],
            leader_epoch=two["leader_epoch"].astype(np.int32),
            attributes=attributes,
            count=two["count"].astype(np.int32),
            first_timestamp=first_timestamp,
            max_timestamp=max_timestamp,
            producer_id=two["producer_id"].astype(np.int64),
            crc=two["crc"].astype(np.uint32),
        )
        old = np.flatnonzero(headers.magic < 2)
        if old.size:
            headers._put_old(raw.view(_MAGIC_0_1), old)
        return headers

    @classmethod
    def of_batches(cls, batches: Batches) -> Self:
        """Return the columns of batches that were read with more doubt."""
        return cls(
            position=batches.position,
            size=batches.size,
            magic=batches.magic,
            base_offset=batches.base_offset,
            last_offset=batches.last_offset,
            leader_epoch=batches.leader_epoch,
            attributes=batches.attributes,
            count=batches.count,
            first_timestamp=_plausible_times(batches.max_timestamp),
            max_timestamp=_plausible_times(batches.max_timestamp),
            producer_id=batches.producer_id,
            crc=batches.crc,
        )

    def _put_old(self, raw: NDArray[np.void], old: NDArray[np.int64]) -> None:
        """Read the rows ``old`` as entries of magic 0 and 1 instead."""
        entry = raw[old]
        attributes = entry["attributes"].astype(np.int16)
        timed = self.magic[old] == 1
        self.last_offset[old] = self.base_offset[old]
        self.leader_epoch[old] = -1
        self.attributes[old] = attributes & (CODEC_MASK | LOG_APPEND_TIME)
        self.count[old] = np.where(attributes & CODEC_MASK, UNKNOWN_COUNT, 1)
        self.first_timestamp[old] = np.where(timed, _plausible_times(entry["timestamp"]), -1)
        self.max_timestamp[old] = self.first_timestamp[old]
        self.producer_id[old] = -1
        self.crc[old] = entry["crc"]

    @property
    def codec(self) -> NDArray[np.int16]:
        """0 none, 1 gzip, 2 snappy, 3 lz4, 4 zstd."""
        return self.attributes & np.int16(CODEC_MASK)

    @property
    def is_control(self) -> NDArray[np.bool_]:
        """Whether a batch holds control records."""
        control: NDArray[np.bool_] = (self.attributes & CONTROL) != 0
        return control

    @property
    def is_transactional(self) -> NDArray[np.bool_]:
        """Whether a batch belongs to a transaction."""
        transactional: NDArray[np.bool_] = (self.attributes & TRANSACTIONAL) != 0
        return transactional

    @property
    def is_whole(self) -> NDArray[np.bool_]:
        """Whether every offset from base to last still has its record."""
        whole: NDArray[np.bool_] = self.count == self.last_offset - self.base_offset + 1
        return whole


def _plausible_times(milliseconds: NDArray[np.int64]) -> NDArray[np.int64]:
    numbers = milliseconds.astype(np.int64)
    return np.where(are_times(numbers), numbers, -1)
