"""A broker that deletes old segments, slow and simple (``UnifiedLog.deleteOldSegments``)."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Segment:
    """A file of a log: its base offset, its bytes, and its newest record, in milliseconds."""

    base: int
    size: int
    newest: int


def kept(
    segments: list[Segment], now: int, retention_ms: int | None, retention_bytes: int | None
) -> list[Segment]:
    """Return what is left once a broker has looked: first by time, then by size."""
    left = list(segments)
    while left and retention_ms is not None and now - left[0].newest > retention_ms:
        left.pop(0)
    if retention_bytes is not None:
        beyond = sum(each.size for each in left) - retention_bytes
        while left and beyond - left[0].size >= 0:
            beyond -= left.pop(0).size
    return left


def is_there(
    position: int,
    segments: list[Segment],
    now: int,
    retention_ms: int | None = None,
    retention_bytes: int | None = None,
) -> bool:
    """Return whether the record at an offset is still there once a broker has looked."""
    left = kept(segments, now, retention_ms, retention_bytes)
    return bool(left) and left[0].base <= position
