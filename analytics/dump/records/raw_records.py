"""Raw records, columnar: byte ranges in one buffer, and the batches they lie in."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from analytics.dump.batches.header_columns import BatchRows

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from analytics.dump.batches.damage import Damage

PADDING = 64
"""Zero bytes after the last byte of `RawRecords.data` that a span can hold, so that reads of fixed
width at the end of a span stay inside the buffer."""


@dataclass(frozen=True)
class Spans:
    """Byte ranges into `RawRecords.data`.

    Attributes:
        start: int64; 0 where null.
        length: int64; -1 is null, 0 is empty.
    """

    start: NDArray[np.int64]
    length: NDArray[np.int64]

    def take(self, rows: NDArray[Any]) -> Spans:
        """Return the given rows."""
        return Spans(self.start[rows], self.length[rows])


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
class RawRecords:
    """Records in log order, one row a record.

    Attributes:
        data: The buffer that all spans point into, with `PADDING` zero bytes after the last span.
        batches: The batches that the records lie in; empty batches are among them.
        batch: int32, row of ``batches``.
        offset: int64.
        timestamp: int64 milliseconds, -1 none.
        record_bytes: int32, size of the encoded record within the decompressed batch, with its
            length varint (magic 2) or its offset and size (magic 0 and 1).
        key: Spans.
        value: Spans; null is a tombstone.
    """

    data: NDArray[np.uint8]
    batches: Batches
    batch: NDArray[np.int32]
    offset: NDArray[np.int64]
    timestamp: NDArray[np.int64]
    record_bytes: NDArray[np.int32]
    key: Spans
    value: Spans

    def __len__(self) -> int:
        return self.offset.size


def take_records(records: RawRecords, rows: NDArray[Any]) -> RawRecords:
    """Return the given rows (indices or a mask); buffer and batches stay as they are."""
    return RawRecords(
        records.data,
        records.batches,
        records.batch[rows],
        records.offset[rows],
        records.timestamp[rows],
        records.record_bytes[rows],
        records.key.take(rows),
        records.value.take(rows),
    )


@dataclass(frozen=True)
class Chunk:
    """A piece of a segment: its readable records and what was damaged on the way to them."""

    records: RawRecords
    damages: list[Damage] = field(default_factory=list)
