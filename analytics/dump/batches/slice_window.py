"""What the bytes at a position of a slice look like, before anything is believed of them."""

from __future__ import annotations

import struct
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np

from analytics.dump.batches.damage import DamageReason
from analytics.dump.batches.headers import (
    BATCH_HEADER,
    LOG_OVERHEAD,
    MAGIC_AT,
    SHORTEST_HEADER,
    SMALLEST,
    read_headers,
)
from analytics.dump.batches.resync import Entry

if TYPE_CHECKING:
    from analytics.dump.batches.log_bounds import LogSense
    from analytics.dump.files.byte_source import ByteSource
    from analytics.dump.records.raw_records import Batches

_WINDOW: Final = 1 << 20

_size_at = struct.Struct(">I").unpack_from


@dataclass(frozen=True)
class SliceWindow:
    """The bytes of a file from ``start`` to ``stop``, of a log of which ``sense`` is known."""

    source: ByteSource
    start: int
    stop: int
    sense: LogSense

    def entry(self, position: int) -> Entry | None:
        """Return the entry that a header which makes sense claims."""
        if self.stop - position < SHORTEST_HEADER:
            return None
        head = self.source.bytes(position, SHORTEST_HEADER)
        size, magic = _size_at(head, 8)[0] + LOG_OVERHEAD, head[MAGIC_AT]
        if magic > 2 or size < SMALLEST[magic] or size >= 1 << 31:
            return None
        return Entry(position, size, magic)

    def header(self, entry: Entry) -> Batches:
        """Return the header of an entry, as one row."""
        data = self.source.array(entry.position, min(entry.size, BATCH_HEADER))
        start, size = np.zeros(1, np.int64), np.array([entry.size], np.int64)
        return read_headers(data, start, size, entry.position)

    def may_go_on(self, position: int) -> bool:
        """Whether what follows a damaged batch looks like a batch or like an end."""
        rest = self.stop - position
        if rest < SHORTEST_HEADER or self.entry(position) is not None:
            return True
        return not any(self.source.bytes(position, min(rest, BATCH_HEADER)))

    def only_zeros(self, position: int) -> bool:
        """Whether nothing but zeros follows."""
        head = self.source.bytes(position, min(BATCH_HEADER, self.stop - position))
        return not any(head) and self.last_nonzero(position) == position

    def last_nonzero(self, position: int) -> int:
        """Return where the zeros at the end begin; ``position`` where there is nothing else."""
        end = self.stop
        while end > position:
            start = max(end - _WINDOW, position)
            found = np.flatnonzero(self.source.array(start, end - start)[: end - start])
            if found.size:
                return start + int(found[-1]) + 1
            end = start
        return position

    def misnomer(self, position: int, next_position: int) -> DamageReason:
        """What to call bytes that are no batch and are followed by one, or by the end."""
        if self.claimed(position) is None:
            return DamageReason.GARBAGE_BETWEEN_BATCHES
        head = self.source.bytes(position, SHORTEST_HEADER)
        if not any(head):
            return DamageReason.GARBAGE_BETWEEN_BATCHES
        leads_on = position + LOG_OVERHEAD + _size_at(head, 8)[0] == next_position
        if head[MAGIC_AT] > 2:
            reason = DamageReason.BAD_MAGIC if leads_on else DamageReason.GARBAGE_BETWEEN_BATCHES
        else:
            reason = DamageReason.BAD_LENGTH
        return reason

    def claimed(self, position: int) -> int | None:
        """Return the offset that stands where a header would have it, if it makes sense."""
        if self.stop - position < SHORTEST_HEADER:
            return None
        offset = int.from_bytes(self.source.bytes(position, 8), signed=True)
        return offset if self.sense.low <= offset < self.sense.high else None
