"""Where a log is cut by a time when the times of its records go back.

Records lie in the order in which they were appended; their times are what a clock said, and a clock
may be set. So a cut by a time is a cut of the log, never a choice of single records. One cut ends
before the first record that is later than the time, the other after the last record that is not.
Where the times never go back both are one. Else the records between them may count or not: what
they are about is not certain.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from analytics.epoch_times import iso_time


@dataclass(frozen=True)
class Frame:
    """The two cuts of a partition at a time.

    Attributes:
        certain_end: The offset of the first record that is later: all before it count.
        possible_end: The offset after the last record that is not later: none from it on counts.
        later_ms: The time of the first later record, epoch milliseconds.
        earlier_ms: The time of the last record that is not later; None where the records between
            the cuts have times that are not believed.
    """

    certain_end: int
    possible_end: int
    later_ms: int
    earlier_ms: int | None = None

    @property
    def is_certain(self) -> bool:
        """Whether both cuts are one."""
        return self.possible_end <= self.certain_end

    def why(self, topic: str, partition: int) -> str:
        """Return in words why records of the partition may count or not."""
        last = self.possible_end - 1
        offsets = (
            f"offset {last}"
            if last == self.certain_end
            else (f"offsets {self.certain_end} to {last}")
        )
        if self.earlier_ms is None:
            return (
                f"{topic}-{partition} says {_iso(self.later_ms)} at offset {self.certain_end}, "
                f"which is not believed; whether {offsets} had been written by then cannot be told"
            )
        return (
            f"the times of {topic}-{partition} go back: offset {self.certain_end} says "
            f"{_iso(self.later_ms)}, offset {last} says {_iso(self.earlier_ms)}; whether "
            f"{offsets} had been written by then cannot be told"
        )


Frames = Mapping[tuple[str, int], Frame]


def frame_rows(frames: Frames) -> list[dict[str, Any]]:
    """Return frames as the manifest of a replay has them."""
    return [
        {
            "topic": topic,
            "partition": partition,
            "certain_end": each.certain_end,
            "possible_end": each.possible_end,
            "later_ms": each.later_ms,
            "earlier_ms": each.earlier_ms,
        }
        for (topic, partition), each in sorted(frames.items())
    ]


def frames_of_rows(rows: Iterable[Mapping[str, Any]]) -> dict[tuple[str, int], Frame]:
    """Return frames of the manifest's rows."""
    names = ("certain_end", "possible_end", "later_ms", "earlier_ms")
    return {(row["topic"], row["partition"]): Frame(*(row[name] for name in names)) for row in rows}


def disputed(frames: Frames, topic: str) -> dict[int, Frame]:
    """Return by partition of a topic the frames whose two cuts differ."""
    return {
        partition: each
        for (of_topic, partition), each in frames.items()
        if of_topic == topic and not each.is_certain
    }


def _iso(time_ms: int) -> str:
    return iso_time(time_ms) or f"{time_ms} ms"
