"""Batches of one stretch of a file to raw records, whatever their formats and codecs."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

import numpy as np

from analytics.dump.batches.damage import Damage, DamageReason
from analytics.dump.batches.headers import BATCH_HEADER, MIN_RECORD
from analytics.dump.records.compression import Codec
from analytics.dump.records.message_sets import (
    Messages,
    Wrapper,
    open_wrapper,
    read_messages,
    value_of_wrapper,
)
from analytics.dump.records.raw_records import Batches, Chunk, RawRecords
from analytics.dump.records.record_batches import Failures, Regions, read_batches
from analytics.dump.records.record_columns import RecordColumns
from analytics.dump.records.regions import Arena, Expansion

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import NDArray

    from analytics.dump.batches.limits import Limits

_CODECS: Final = {each.value: each.name.lower() for each in Codec}
_ARENA_CHUNKS: Final = 4
"""Decompressed bytes of one piece, in chunks."""


class ChunkReader:
    """Reads stretches of one segment, in file order."""

    def __init__(self, limits: Limits, chunk_bytes: int) -> None:
        self._limits = limits
        self._arena_bytes = min(_ARENA_CHUNKS * chunk_bytes, limits.max_decompressed_bytes)
        self._expansion = Expansion(limits)

    def read(
        self, data: NDArray[np.uint8], file_position: int, batches: Batches
    ) -> Iterator[Chunk]:
        """Yield the records of batches that lie in a buffer, in one piece or several.

        Args:
            data: Bytes of the file, with `PADDING` zeros after them.
            file_position: Where in the file they begin.
            batches: Headers of the batches, in file order.
        """
        self._expansion.earn(int(batches.size.sum()))
        start = batches.position - file_position
        first = 0
        while first < len(batches):
            piece = _Piece(data, start[first:], batches.take(slice(first, None)), self._limits)
            size = piece.decompress(Arena(self._arena_bytes, self._limits, self._expansion))
            yield piece.read()
            first += size


@dataclass
class _Piece:
    """The batches of one chunk."""

    data: NDArray[np.uint8]
    start: NDArray[np.int64]
    batches: Batches
    limits: Limits

    def decompress(self, arena: Arena) -> int:
        """Lay out the regions of as many batches as there is room for; return how many."""
        self._failures: Failures = {}
        size = self._within_records()
        self._region_start = self.start[:size] + BATCH_HEADER
        self._region_end = self.start[:size] + self.batches.size[:size]
        packed = np.flatnonzero(self.batches.codec[:size] != 0)
        if packed.size:
            size = self._unpack(packed, arena, size)
        self.start, self.batches = self.start[:size], self.batches.take(slice(0, size))
        self._region_start, self._region_end = self._region_start[:size], self._region_end[:size]
        return size

    def _within_records(self) -> int:
        """Return how many batches hold together no more records than one batch may."""
        claimed = np.clip(self.batches.count, 1, None).astype(np.int64)
        plain = self.batches.codec == 0
        claimed[plain] = np.minimum(claimed[plain], self.batches.size[plain] // MIN_RECORD)
        together = np.cumsum(np.minimum(claimed, self.limits.max_batch_records))
        size = int(np.searchsorted(together, self.limits.max_batch_records, "right"))
        for row in np.flatnonzero(claimed[:size] > self.limits.max_batch_records).tolist():
            self._failures[row] = DamageReason.BATCH_TOO_LARGE
        return max(size, 1)

    def _unpack(self, packed: NDArray[np.int64], arena: Arena, size: int) -> int:
        """Decompress rows in order until the arena is full; put regions behind the plain bytes."""
        laid: list[tuple[int, int, int]] = []
        view = self.data.data
        for row in packed.tolist():
            if row in self._failures:
                continue
            content = self._compressed(view, row)
            if content is None:
                self._failures[row] = DamageReason.BAD_RECORD
                continue
            place = arena.add(int(self.batches.codec[row]), content)
            if place is None:
                size = row
                break
            if isinstance(place, DamageReason):
                self._failures[row] = place
            else:
                laid.append((row, *place))
        base = 0
        if packed[packed < size].size == size:
            self.data = arena.data
        else:
            base = self.data.size
            self.data = np.concatenate([self.data, arena.data])
        for row, start, end in laid:
            self._region_start[row], self._region_end[row] = start + base, end + base
        return size

    def _compressed(self, view: memoryview, row: int) -> memoryview | None:
        start, size = int(self.start[row]), int(self.batches.size[row])
        magic = int(self.batches.magic[row])
        if magic == 2:
            return view[start + BATCH_HEADER : start + size]
        message = view[start : start + size]
        value = value_of_wrapper(message, magic)
        return message[value[0] : value[1]] if value else None

    def read(self) -> Chunk:
        """Read the records of the batches laid out."""
        newer = self.batches.magic == 2
        parts = [self._magic_2(np.flatnonzero(newer & self._readable()))]
        if not newer.all():
            parts.append(self._legacy())
        columns = RecordColumns.in_batch_order(parts)
        return self._chunk(columns)

    def _readable(self) -> NDArray[np.bool_]:
        readable = np.ones(len(self.batches), np.bool_)
        readable[list(self._failures)] = False
        return readable

    def _magic_2(self, rows: NDArray[np.int64]) -> RecordColumns:
        batches = self.batches.take(rows)
        regions = Regions(
            start=self._region_start[rows],
            end=self._region_end[rows],
            count=batches.count.astype(np.int64),
            base_offset=batches.base_offset,
            last_offset=batches.last_offset,
            base_timestamp=batches.base_timestamp,
            append_time=batches.max_timestamp,
            is_append_time=batches.timestamp_type == 1,
        )
        columns, failures = read_batches(self.data, regions)
        self._failures |= {int(rows[row]): why for row, why in failures.items()}
        return replace(columns, batch=rows[columns.batch])

    def _legacy(self) -> RecordColumns:
        """Read messages alone and in wrappers."""
        old = (self.batches.magic < 2) & self._readable()
        plain = np.flatnonzero(old & (self.batches.codec == 0))
        sets = [
            Messages(
                batch=plain,
                start=self.start[plain],
                size=self.batches.size[plain],
                magic=self.batches.magic[plain].astype(np.int64),
                offset=self.batches.base_offset[plain],
            )
        ]
        for row in np.flatnonzero(old & (self.batches.codec != 0)).tolist():
            opened = self._open(row)
            if isinstance(opened, DamageReason):
                self._failures[row] = opened
                continue
            sets.append(opened)
        return self._messages(Messages.in_batch_order(sets))

    def _open(self, row: int) -> Messages | DamageReason:
        wrapper = Wrapper(row, int(self.batches.magic[row]), int(self.batches.last_offset[row]))
        start, end = int(self._region_start[row]), int(self._region_end[row])
        return open_wrapper(self.data, start, end, wrapper, self.limits.max_batch_records)

    def _messages(self, messages: Messages) -> RecordColumns:
        columns, wrong = read_messages(self.data, messages)
        batch = columns.batch
        # A broker's timestamp on the wrapper is that of all messages in it.
        by_broker = (self.batches.timestamp_type[batch] == 1) & (self.batches.codec[batch] != 0)
        timestamp = np.where(by_broker, self.batches.max_timestamp[batch], columns.timestamp)
        columns = replace(columns, timestamp=timestamp)
        if wrong.any():
            broken = np.unique(batch[wrong])
            self._failures |= dict.fromkeys(broken.tolist(), DamageReason.BAD_RECORD)
            columns = columns.take(~np.isin(batch, broken))
        return columns

    def _chunk(self, columns: RecordColumns) -> Chunk:
        readable = self._readable()
        batch = columns.batch
        if self._failures:
            batch = (np.cumsum(readable) - 1)[batch]
        records = RawRecords(
            data=self.data,
            batches=self.batches.take(readable) if self._failures else self.batches,
            batch=batch.astype(np.int32),
            offset=columns.offset,
            timestamp=columns.timestamp,
            record_bytes=columns.record_bytes.astype(np.int32),
            key=columns.key,
            value=columns.value,
        )
        return Chunk(records, [self._damage(row) for row in sorted(self._failures)])

    def _damage(self, row: int) -> Damage:
        batches = self.batches
        size, count = int(batches.size[row]), int(batches.count[row])
        offset, last = int(batches.base_offset[row]), int(batches.last_offset[row])
        most = last - offset + 1
        if not batches.codec[row]:
            most = min(most, size // MIN_RECORD)
        codec = _CODECS.get(int(batches.codec[row]), "unknown codec")
        return Damage(
            int(batches.position[row]),
            size,
            self._failures[row],
            f"magic {batches.magic[row]}, {codec}, claims {count} records",
            offset,
            records=max(min(count, most), 0),
        )
