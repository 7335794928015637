"""Batches that have headers and no records to speak of."""

from __future__ import annotations

import struct

_HEADER = struct.Struct(">qiibIhiqqqhii")


def batch(base: int, offsets: int, count: int | None = None, more: int = 9) -> bytes:
    """A magic 2 batch whose records are of no matter."""
    records = offsets if count is None else count
    head = _HEADER.pack(
        *(base, _HEADER.size - 12 + more, 0, 2, 0, 0, offsets - 1, 0, 0, -1, -1, -1, records)
    )
    return head + bytes(more)
