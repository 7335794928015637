"""The batch headers of a segment, as columns: one row a batch, at the same place in every array."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from analytics.epoch_times import are_times

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from analytics.dump.records.raw_records import Batches

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
