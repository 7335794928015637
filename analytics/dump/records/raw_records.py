"""Raw records, columnar: byte ranges in one buffer, and the batches they lie in."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from analytics.dump.batches.batch_bytes import DamageReason
from analytics.dump.batches.headers import Batches
from analytics.dump.records.compression import NoRoomError, UnreadableError, decompress_into

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from analytics.dump.batches.batch_bytes import Damage, Limits

# The decompressed side of a chunk: what its compressed batches hold, one after the other.


class Expansion:
    """How many bytes one read has decompressed, and may yet."""

    def __init__(self, limits: Limits) -> None:
        self._limits = limits
        self._allowance = limits.free_expansion_bytes

    def earn(self, size: int) -> None:
        """Bytes of the file were read."""
        self._allowance += size * self._limits.max_expansion

    def spend(self, size: int) -> bool:
        """Whether so many decompressed bytes are still within bounds."""
        self._allowance -= size
        return self._allowance >= 0


class Arena:
    """A buffer that decompressed regions are laid into, in order."""

    def __init__(self, size: int, limits: Limits, expansion: Expansion) -> None:
        self._room = np.empty(size + PADDING, np.uint8)
        self._limits = limits
        self._expansion = expansion
        self.used = 0

    def add(self, codec: int, content: memoryview) -> tuple[int, int] | DamageReason | None:
        """Decompress a batch.

        Returns:
            Where it lies, why it cannot be read, or None where this arena is too full for it.
        """
        room = self._room.data[self.used : -PADDING]
        try:
            size = decompress_into(codec, content, room)
        except UnreadableError:
            return DamageReason.BAD_COMPRESSION
        except NoRoomError:
            if self.used:
                return None
            return self._alone(codec, content, len(room))
        return self._room_for(size)

    def _alone(self, codec: int, content: memoryview, tried: int) -> tuple[int, int] | DamageReason:
        """A batch larger than the arena gets one of its own, of the largest size allowed."""
        most = self._limits.max_decompressed_bytes
        if tried >= most:
            return DamageReason.DECOMPRESSED_TOO_LARGE
        # Memory that is never written costs nothing.
        self._room = np.empty(most + PADDING, np.uint8)
        try:
            return self._room_for(decompress_into(codec, content, self._room.data[:-PADDING]))
        except UnreadableError:
            return DamageReason.BAD_COMPRESSION
        except NoRoomError:
            return DamageReason.DECOMPRESSED_TOO_LARGE

    def _room_for(self, size: int) -> tuple[int, int] | DamageReason:
        if size > self._limits.max_decompressed_bytes or not self._expansion.spend(size):
            return DamageReason.DECOMPRESSED_TOO_LARGE
        start, self.used = self.used, self.used + size
        return start, self.used

    @property
    def data(self) -> NDArray[np.uint8]:
        """What was laid, with `PADDING` zeros after it."""
        self._room[self.used : self.used + PADDING] = 0
        return self._room[: self.used + PADDING]


# Records of some batches as columns, before they are put in order with those of others.


@dataclass(frozen=True)
class RecordColumns:
    """One row a record; the columns of `RawRecords` of the same names."""

    batch: NDArray[np.int64]
    offset: NDArray[np.int64]
    timestamp: NDArray[np.int64]
    record_bytes: NDArray[np.int64]
    key: Spans
    value: Spans

    def __len__(self) -> int:
        return self.offset.size

    def take(self, rows: NDArray[Any]) -> Self:
        """Return the given rows (indices or a mask)."""
        return type(self)(
            self.batch[rows],
            self.offset[rows],
            self.timestamp[rows],
            self.record_bytes[rows],
            self.key.take(rows),
            self.value.take(rows),
        )

    @classmethod
    def empty(cls) -> Self:
        """Return no rows."""
        none = np.empty(0, np.int64)
        return cls(none, none, none, none, Spans(none, none), Spans(none, none))

    @classmethod
    def in_batch_order(cls, parts: list[Self]) -> Self:
        """Return the rows of all parts, ordered by batch, else as they were."""
        parts = [part for part in parts if len(part)] or [cls.empty()]
        if len(parts) == 1:
            return parts[0]
        joined = cls(
            np.concatenate([part.batch for part in parts]),
            np.concatenate([part.offset for part in parts]),
            np.concatenate([part.timestamp for part in parts]),
            np.concatenate([part.record_bytes for part in parts]),
            _joined([part.key for part in parts]),
            _joined([part.value for part in parts]),
        )
        return joined.take(np.argsort(joined.batch, kind="stable"))


def _joined(parts: list[Spans]) -> Spans:
    starts = np.concatenate([part.start for part in parts])
    return Spans(starts, np.concatenate([part.length for part in parts]))


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
