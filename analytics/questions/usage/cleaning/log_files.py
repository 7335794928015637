"""The segments of a copy of a log as the cleaner sees them: what is clean, dirty, active."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final, NamedTuple

_LOG: Final = "log"


class Segment(NamedTuple):
    """A segment: its base offset, bytes, and the times of its first and last record, ms."""

    base_offset: int
    size: int
    first_ms: int | None
    last_ms: int | None


@dataclass(frozen=True)
class LogFiles:
    """A copy of a log.

    Attributes:
        segments: In the order of offsets; the last is active.
        first_dirty: The cleaner's checkpoint; None where there is none.
        start: Log start offset.
        end: Log end offset.
        last_stable: First offset of an open transaction, or the log's end.
        horizons: Delete horizons: (milliseconds, first offset, end offset), by offset.
        thinned_to: End of the last offset that compaction has removed something before; None
            where nothing shows.
    """

    segments: tuple[Segment, ...]
    first_dirty: int | None
    start: int
    end: int
    last_stable: int
    horizons: tuple[tuple[int, int, int], ...] = ()
    thinned_to: int | None = None

    @classmethod
    def of(
        cls,
        partition: Mapping[str, Any],
        account: Mapping[str, Any],
        last_stable: int | None = None,
    ) -> LogFiles:
        """Take what the manifest says of a copy of a partition.

        Args:
            partition: Of its `partitions`.
            account: Of its `reconciliation`.
            last_stable: First offset of an open transaction, where one is.
        """
        segments = sorted(
            Segment(
                int(each["name"].rpartition("/")[2][:20]),
                each["size"],
                milliseconds(each.get("first_timestamp")),
                milliseconds(each.get("last_timestamp")),
            )
            for each in partition["files"]
            if each["kind"] == _LOG
        )
        end = partition["end_offset"] or 0
        first = segments[0].base_offset if segments else 0
        # The last stable offset is never above the high watermark.
        limits = [last_stable, partition.get("high_watermark")]
        stable = min([end, *(each for each in limits if each is not None)])
        horizons = tuple(
            (each["horizon_ms"], each["first_offset"], each["end_offset"])
            for each in account.get("delete_horizons", ())
        )
        thinned = [partition.get("thinned_end")]
        dirty = partition.get("first_dirty_offset")
        thinned += [
            gap["end_offset"] for gap in partition.get("gaps", ()) if gap["kind"] == "compaction"
        ]
        return cls(
            tuple(segments),
            dirty,
            max(first, partition.get("log_start_offset") or 0),
            end,
            stable,
            horizons,
            max((each for each in thinned if each is not None), default=None),
        )

    @property
    def active(self) -> Segment:
        """The segment that is written to; there must be one."""
        return self.segments[-1]

    @property
    def dirty_from(self) -> int | None:
        """The first offset that was not cleaned (``LogCleanerManager.cleanableOffsets``)."""
        if self.first_dirty is None:
            return None
        is_valid = self.start <= self.first_dirty <= self.end
        return self.first_dirty if is_valid else self.start

    def cleanable_to(self, not_after_ms: float | None = None) -> int:
        """Return the offset up to which the cleaner may go: always the start of a segment.

        Not into the active segment, nor into the one with the first open transaction, nor where
        records are younger than `min.compaction.lag.ms` (``calculateCleanableBytes``).

        Args:
            not_after_ms: A segment with a record later than this must wait.
        """
        bound = min(self.active.base_offset, self._segment_of(self.last_stable).base_offset)
        if not_after_ms is not None:
            dirty = self.dirty_from or self.start
            young = [
                each.base_offset
                for each in self.segments[:-1]
                if each.base_offset >= self._segment_of(dirty).base_offset
                and each.last_ms is not None
                and each.last_ms > not_after_ms
            ]
            bound = min([bound, *young])
        return bound

    def clean_bytes(self, dirty_from: int) -> int:
        """Return bytes of segments that begin below the first dirty offset."""
        return sum(each.size for each in self.segments if each.base_offset < dirty_from)

    def cleanable_bytes(self, dirty_from: int, bound: int) -> int:
        """Return bytes of segments from the one with the first dirty offset up to a bound."""
        return sum(each.size for each in self.cleanable(dirty_from, bound))

    def cleanable(self, dirty_from: int, bound: int) -> list[Segment]:
        """Return the segments from the one with the first dirty offset up to a bound."""
        if dirty_from >= bound:
            return []
        first = self._segment_of(dirty_from).base_offset
        return [each for each in self.segments if first <= each.base_offset < bound]

    def horizon_of(self, offset: int) -> int | None:
        """Return the delete horizon of the batch with an offset, None where it has none."""
        for horizon, first, end in self.horizons:
            if first <= offset < end:
                return horizon
        return None

    def _segment_of(self, offset: int) -> Segment:
        place = bisect_right([each.base_offset for each in self.segments], offset) - 1
        return self.segments[max(place, 0)]


def milliseconds(time: str | None) -> int | None:
    """Return a time of the manifest as epoch milliseconds; None for none."""
    return None if time is None else round(datetime.fromisoformat(time).timestamp() * 1000)
