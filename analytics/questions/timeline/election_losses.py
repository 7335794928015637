"""Offsets that went back, vanished or came back because another broker's log was elected.

`was` is what the lost line had last. `became` is the first commit after the election where that is
before `was`: there the group has resumed. Else it is what the surviving line had in force when the
election made it the truth. `cost` is `was` less `became`: so many records, at least, were read
again, or skipped where it is negative. It is 0 where a member kept its position, and null where
nothing tells from where the group read on. What is equal on both lines is no loss.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from analytics.questions.timeline.history import COMMITS, OffsetHistory
from analytics.questions.timeline.lost_lines import LostLine
from analytics.questions.timeline.words import (
    HIGH,
    LOST,
    LOST_WITH_TOPIC,
    LOW,
    Row,
    Verdict,
    place_of,
    record_of,
    verdict_row,
)
from schemas import CONSUMER_OFFSETS

_UNANSWERED = "nothing shows that this commit was ever acknowledged"


def election_losses(
    lines: Iterable[LostLine], history: OffsetHistory, uncompacted_from: Mapping[int, int]
) -> list[Verdict]:
    """Return a verdict for each place that a lost line had changed last.

    Args:
        lines: Of lines that did not survive.
        history: Of the line that did.
        uncompacted_from: By internal partition, the offset before which compaction took records.
    """
    longest = _longest(lines)
    found = (
        _Loss(
            line,
            last,
            history,
            uncompacted_from.get(line.partition, 0),
            is_followed=_is_followed(line, last, longest),
        ).verdict()
        for line, last in longest
    )
    return [each for each in found if each is not None]


def _longest(lines: Iterable[LostLine]) -> list[tuple[LostLine, Row]]:
    """Return the last change of each place; of copies that lost the same line, the longer one's."""
    found: dict[tuple[Any, ...], tuple[LostLine, Row]] = {}
    for line in lines:
        for last in line.last:
            key = (place_of(last), line.partition, line.leader_epoch)
            if key not in found or found[key][1]["record_offset"] < last["record_offset"]:
                found[key] = (line, last)
    return list(found.values())


def _is_followed(line: LostLine, last: Row, lines: Iterable[tuple[LostLine, Row]]) -> bool:
    """Return whether what came after a line is on a line that was lost later, too."""
    return any(
        other.partition == line.partition
        and place_of(row) == place_of(last)
        and (other.leader_epoch or 0) > (line.leader_epoch or 0)
        for other, row in lines
    )


@dataclass(frozen=True)
class _Became:
    """What an offset became, what that cost (None where it cannot be told), and what says so."""

    offset: int | None
    cost: int | None
    why: str


@dataclass(frozen=True)
class _Loss:
    """What a lost line had last of one place, and what the surviving line has instead."""

    line: LostLine
    last: Row
    history: OffsetHistory
    uncompacted_from: int
    is_followed: bool = False

    def verdict(self) -> Verdict | None:
        """Return the verdict; None where both lines have the same offset, or none."""
        place, line, was = place_of(self.last), self.line, self.last["committed_offset"]
        base = _commit(self.history.before(place, line.diverges_at))
        after = _commit(self.history.first_from(place, line.diverges_at))
        if was == (None if base is None else base["committed_offset"]):
            return None
        became = self._deleted(base) if was is None else self._became(was, base, after)
        return verdict_row(
            place,
            LOST if line.other_topic is None else LOST_WITH_TOPIC,
            at=line.elected_at,
            not_before=line.elected_after,
            was=was,
            committed_at=None if was is None else self.last["timestamp"],
            became=became.offset,
            cost=None if line.lacks else became.cost,
            confidence=LOW if line.lacks or not self._is_committed() else HIGH,
            record=record_of({**self.last, "coordinator_partition": line.partition}),
            reason="; ".join([became.why, *self._remarks()]),
        )

    def _is_committed(self) -> bool:
        """Return whether the record was replicated to all in sync before the line was lost.

        What was not, no client was told of: a clean election may have cut it off.
        """
        below = self.line.committed_below
        return below is None or bool(self.last["record_offset"] < below)

    def _remarks(self) -> list[str]:
        group_type = self.line.types.get(self.last["group_id"])
        line_topic = self.line.other_topic
        return [
            *([] if line_topic is None else [_other_topic(line_topic)]),
            *([] if group_type is None else [f"there it is a {group_type} group"]),
            *([] if self._is_committed() else [_UNANSWERED]),
            *([self.line.lacks] if self.line.lacks else []),
        ]

    def _deleted(self, base: Row | None) -> _Became:
        copy = self.line.copy
        why = f"it was deleted, which only copy {copy} has ({_ask(copy)}): the offset came back"
        return _Became(None if base is None else base["committed_offset"], None, why)

    def _became(self, was: int, base: Row | None, after: Row | None) -> _Became:
        only_there = f"only copy {self.line.copy} has it ({_ask(self.line.copy)})"
        first = None if after is None else after["committed_offset"]
        if base is None and self.uncompacted_from > self.line.diverges_at:
            why = f"{only_there}; what was in force after the election is no longer in the log"
            return _Became(first, None, why)
        answered = None if base is None else base["committed_offset"]
        had = "no offset" if answered is None else str(answered)
        why = f"{only_there}; the surviving log had {had}"
        if self.is_followed:
            return _Became(answered, None, f"{why}, and what came next was lost, too")
        if first is None or first == answered:
            return _Became(answered, _cost(was, answered), why)
        why = f"{why}, and the next commit was {first}"
        if (answered or 0) <= first < was:
            return _Became(first, _cost(was, first), why)
        if _is_same_member(base, after):
            return _Became(answered, 0, f"{why}: the member kept its position")
        known = _is_other_member(base, after)
        return _Became(answered, _cost(was, answered) if known else None, why)


def _other_topic(topic_id: str) -> str:
    return f"{CONSUMER_OFFSETS} was deleted and made again: that copy is of topic id {topic_id}"


def _commit(change: Row | None) -> Row | None:
    return change if change is not None and change["event"] in COMMITS else None


def _cost(was: int, became: int | None) -> int | None:
    return None if became is None else was - became


def _ask(copy: str) -> str:
    return f"--prefer-copy {copy}"


def _is_same_member(before: Row | None, after: Row | None) -> bool:
    """Return whether one member owned the partition all along, and read no committed offset."""
    if before is None or after is None or after["member_id"] is None:
        return False
    return bool(before["member_id"] == after["member_id"] and before["epoch"] == after["epoch"])


def _is_other_member(before: Row | None, after: Row | None) -> bool:
    """Return whether another member has the partition, which began where the group stood."""
    if before is None or after is None or before["member_id"] is None:
        return False
    return after["member_id"] not in (None, before["member_id"])
