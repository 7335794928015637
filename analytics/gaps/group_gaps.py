"""Why something of a group cannot be told."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from analytics.gaps.gap import Gap, gap
from schemas import CONSUMER_OFFSETS

if TYPE_CHECKING:
    from analytics.replay.log.frames import Frame


@dataclass(frozen=True)
class GroupGaps:
    """Why something of a group cannot be told; what has no gap is known whole.

    Attributes:
        offsets: Why its committed or pending offsets may not be all, or not the last ones.
        membership: Why its state, members and assignments may not be the last ones.
        history: Why its history has gaps.
    """

    offsets: tuple[Gap, ...] = ()
    membership: tuple[Gap, ...] = ()
    history: tuple[Gap, ...] = ()

    @property
    def every(self) -> tuple[Gap, ...]:
        """All of them, each once."""
        return tuple(dict.fromkeys((*self.offsets, *self.membership, *self.history)))


def gap_between_cuts(code: str, group: str, partition: int, frame: Frame) -> Gap:
    """Return a gap of a group with records between the two cuts of a log.

    Args:
        code: What of the group is not certain.
        group: Its id.
        partition: Of the offsets topic.
        frame: The cuts.
    """
    return gap(
        code,
        group_id=group,
        topic=CONSUMER_OFFSETS,
        partition=partition,
        from_offset=frame.certain_end,
        to_offset=frame.possible_end,
        why=frame.why(CONSUMER_OFFSETS, partition),
    )
