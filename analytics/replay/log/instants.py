"""The instant asked about: the end of each internal partition's log, or a time."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from analytics.replay.log.frames import Frame


@dataclass(frozen=True)
class AsOf:
    """Which records count.

    Attributes:
        offsets: End offset (exclusive) by topic and partition; partitions not named are taken to
            their end.
        timestamp_ms: Epoch milliseconds; a record counts if its append time is not later. One
            without a time (message format 0) counts unless something says that it is later
            (`timeless_ends`).
        frames: Of the partitions whose times go back, by topic and partition: there all records
            before `possible_end` count, whatever their times.
    """

    offsets: Mapping[tuple[str, int], int] = field(default_factory=dict)
    timestamp_ms: int | None = None
    frames: Mapping[tuple[str, int], Frame] = field(default_factory=dict)

    @property
    def is_end(self) -> bool:
        """Whether everything counts."""
        return not self.offsets and self.timestamp_ms is None


END = AsOf()
