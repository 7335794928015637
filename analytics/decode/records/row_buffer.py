"""A buffer for records of tables that a chunk has few of; later ones are decoded with them.

Decoding a record type costs the same for ten records as for a thousand. Most chunks of an offsets
log are commits and a handful of group records; those wait here, copied out of their chunk.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

import numpy as np

from analytics.dump.records.raw_records import PADDING, Batches, RawRecords, Spans

if TYPE_CHECKING:
    from numpy.typing import NDArray

FEW: Final = 2_000
"""A chunk with fewer rows of a table buffers them."""
MOST_ROWS: Final = 8_000
"""The buffer is full with so many rows; the last chunk may add more."""
_MOST_BYTES: Final = 4 << 20


@dataclass
class RowBuffer:
    """Records that wait to be decoded, in log order for each table."""

    parts: list[RawRecords] = field(default_factory=list)
    tables: set[str] = field(default_factory=set)

    def is_room_for(self, table: str, rows: int) -> bool:
        """Whether so many rows of a table are to wait; behind others that wait, all of them do."""
        return rows < FEW or table in self.tables

    def add(self, table: str, records: RawRecords, rows: NDArray[np.int64]) -> None:
        """Copy records, so that their chunk can go."""
        self.parts.append(_copied(records, rows))
        self.tables.add(table)

    @property
    def is_full(self) -> bool:
        """Whether enough wait to be decoded."""
        rows = sum(len(part) for part in self.parts)
        return rows >= MOST_ROWS or sum(part.data.size for part in self.parts) >= _MOST_BYTES

    def release(self) -> RawRecords:
        """Give out all that wait; at least one."""
        parts, self.parts, self.tables = self.parts, [], set()
        return _joined(parts)


def _copied(records: RawRecords, rows: NDArray[np.int64]) -> RawRecords:
    """Return some records in a buffer of their own: their keys and values, nothing else."""
    batch, number = np.unique(records.batch[rows], return_inverse=True)
    key, value = records.key.take(rows), records.value.take(rows)
    lengths = np.maximum(np.column_stack([key.length, value.length]).ravel(), 0)
    starts = np.column_stack([key.start, value.start]).ravel()
    after = np.cumsum(lengths)
    view = records.data.data
    spans = zip(starts.tolist(), (starts + lengths).tolist(), strict=True)
    return RawRecords(
        data=np.frombuffer(b"".join([view[start:end] for start, end in spans]), np.uint8),
        batches=records.batches.take(batch),
        batch=number.astype(np.int32),
        offset=records.offset[rows],
        timestamp=records.timestamp[rows],
        record_bytes=records.record_bytes[rows],
        key=Spans((after - lengths)[0::2], key.length),
        value=Spans((after - lengths)[1::2], value.length),
    )


def _joined(parts: list[RawRecords]) -> RawRecords:
    bytes_before = np.cumsum([0, *(part.data.size for part in parts)])[:-1].tolist()
    batches_before = np.cumsum([0, *(len(part.batches) for part in parts)])[:-1].tolist()
    return RawRecords(
        data=np.concatenate([*(part.data for part in parts), np.zeros(PADDING, np.uint8)]),
        batches=Batches.concatenate([part.batches for part in parts]),
        batch=np.concatenate(
            [part.batch + before for part, before in zip(parts, batches_before, strict=True)],
            dtype=np.int32,
        ),
        offset=np.concatenate([part.offset for part in parts]),
        timestamp=np.concatenate([part.timestamp for part in parts]),
        record_bytes=np.concatenate([part.record_bytes for part in parts]),
        key=_shifted([part.key for part in parts], bytes_before),
        value=_shifted([part.value for part in parts], bytes_before),
    )


def _shifted(parts: list[Spans], before: list[int]) -> Spans:
    starts = [part.start + shift for part, shift in zip(parts, before, strict=True)]
    return Spans(np.concatenate(starts), np.concatenate([part.length for part in parts]))
