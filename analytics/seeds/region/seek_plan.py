"""Where members would read on from if the latest complete checkpoint were restored at the instant.

A partition that a member has is sought to the offset of the merged checkpoint, else to the initial
offset that the group keeps of it, else to the start position that its operators are given.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from analytics.seeds.region.contributions import Partition
from analytics.seeds.region.members import Matched, Member
from analytics.seeds.region.merge import Checkpoint, MergedOffset

CHECKPOINT: Final = "checkpoint"
INITIAL: Final = "initial"
START_POSITION: Final = "start_position"
UNKNOWN: Final = "unknown"

BEGINNING: Final = "beginning"
END: Final = "end"
COMMITTED: Final = "committed"
START_POSITIONS: Final = (BEGINNING, END, COMMITTED)

NO_TOPIC: Final = "no_topic"


@dataclass(frozen=True)
class Committed:
    """The committed offset of a partition that is in force.

    Attributes:
        offset: None where it cannot be told.
        is_of_other_topic: It was committed for another topic of this name.
        missing: Why it cannot be told.
    """

    offset: int | None
    is_of_other_topic: bool = False
    missing: str | None = None


@dataclass(frozen=True)
class Log:
    """The log of a partition, as far as it is known.

    Attributes:
        start: Its log start offset.
        end: Its log end offset.
        created_at: When its topic was created, in epoch milliseconds.
    """

    start: int | None = None
    end: int | None = None
    created_at: int | None = None


@dataclass(frozen=True)
class Present:
    """What a dump shows of a group at the instant.

    Attributes:
        owners: Who has which partition.
        committed: Offsets in force.
        logs: Of the partitions.
        initial: Initial offsets that were given.
        start_position: Where reading starts without one; None where not given.
        deleted_topics: Topics that were deleted, and of which none of the name is there.
        matched: Which member is which operator.
        gap: Why its offsets cannot be told.
        left_out: By topic, why no offset of it is there.
        membership_gap: Why its members cannot be told.
    """

    owners: Mapping[Partition, Member] = field(default_factory=dict)
    committed: Mapping[Partition, Committed] = field(default_factory=dict)
    logs: Mapping[Partition, Log] = field(default_factory=dict)
    initial: Mapping[Partition, int] = field(default_factory=dict)
    start_position: str | None = None
    deleted_topics: Collection[str] = ()
    matched: Matched = field(default_factory=Matched)
    gap: str | None = None
    membership_gap: str | None = None
    left_out: Mapping[str, str] = field(default_factory=dict)

    def gap_of(self, topic: str) -> str | None:
        """Return why an offset of a topic that is not there may have been committed."""
        return self.left_out.get(topic) or self.gap


@dataclass(frozen=True)
class Seek:
    """Where a partition is read on from.

    Attributes:
        partition: The partition.
        owner: Who has it.
        operator: Which operator that is.
        offset: Where reading goes on; None where it cannot be told.
        basis: What says so.
        contributed_by: Who contributed the offset.
        committed: The offset in force.
        commit_is: It against the offset sought.
        log: Of the partition.
        log_is: What the log has of it.
        missing: Why the offset cannot be told.
    """

    partition: Partition
    owner: Member | None
    operator: str | None
    offset: int | None
    basis: str
    contributed_by: str | None
    committed: Committed | None
    commit_is: str
    log: Log
    log_is: str | None
    missing: str | None

    @property
    def moved(self) -> bool | None:
        """Whether another operator has it than the one that contributed its offset."""
        if self.operator is None or self.contributed_by is None:
            return None
        return self.operator != self.contributed_by

    @property
    def ahead_by(self) -> int | None:
        """How far the committed offset is beyond."""
        offset = None if self.committed is None else self.committed.offset
        if offset is None or self.offset is None or self.commit_is == "other_topic":
            return None
        return offset - self.offset


def seek_plan(latest: Checkpoint | None, present: Present) -> list[Seek]:
    """Return the plan of a group, by partition.

    Args:
        latest: The latest complete checkpoint; None where there is none.
        present: The group at the instant.
    """
    covered = latest.offsets if latest is not None else {}
    return [_seek(each, latest, present) for each in sorted({*covered, *present.owners})]


def latest_complete(checkpoints: Sequence[Checkpoint]) -> Checkpoint | None:
    """Return the last of a group's checkpoints that the group takes for merged."""
    return next((each for each in reversed(checkpoints) if each.is_merged), None)


def _seek(partition: Partition, latest: Checkpoint | None, present: Present) -> Seek:
    said = latest.offsets.get(partition) if latest is not None else None
    committed = present.committed.get(partition)
    log = present.logs.get(partition, Log())
    offset, basis, missing = _offset(said, partition, present, log)
    made_at = latest.made_at if latest is not None and said is not None else None
    is_gone = partition[0] in present.deleted_topics
    log_is = NO_TOPIC if is_gone else _log_is(offset, log, made_at)
    owner = present.owners.get(partition)
    operator = None if owner is None else present.matched.operators.get(owner.member_id)
    return Seek(
        partition,
        owner,
        operator,
        offset,
        basis,
        _contributor(said),
        committed,
        _commit_is(offset, committed, present.gap_of(partition[0])),
        log,
        log_is,
        missing,
    )


def _contributor(merged: MergedOffset | None) -> str | None:
    if merged is None or merged.offset is None:
        return None
    return merged.decided_by or (merged.operators[0] if len(merged.operators) == 1 else None)


def _offset(
    merged: MergedOffset | None, partition: Partition, present: Present, log: Log
) -> tuple[int | None, str, str | None]:
    """Return the offset sought, what says so, and why it is not known."""
    if merged is not None and merged.named and merged.offset is None:
        return None, UNKNOWN, merged.missing
    if merged is not None and merged.offset is not None:
        return merged.offset, CHECKPOINT, None
    if partition in present.initial:
        return present.initial[partition], INITIAL, None
    uncovered = "no complete checkpoint covers it"
    if present.start_position is None:
        return None, UNKNOWN, f"{uncovered}, and no initial offset is given"
    offset, why = _started(partition, present, log)
    if offset is None:
        return None, UNKNOWN, f"{uncovered}, and {why}"
    return offset, START_POSITION, None


def _started(partition: Partition, present: Present, log: Log) -> tuple[int | None, str]:
    if present.start_position == BEGINNING:
        return log.start, "its log start offset is not known"
    if present.start_position == END:
        return log.end, "its log end offset is not known"
    committed = present.committed.get(partition)
    if committed is None or committed.offset is None or committed.is_of_other_topic:
        return None, "no committed offset of it is known"
    return committed.offset, ""


def _commit_is(offset: int | None, committed: Committed | None, gap: str | None) -> str:
    if committed is None:
        return "cannot_tell" if gap else "no_commit"
    if committed.is_of_other_topic:
        return "other_topic"
    if committed.offset is None or offset is None:
        return "cannot_tell"
    if committed.offset == offset:
        return "equal"
    return "ahead" if committed.offset > offset else "behind"


def _log_is(offset: int | None, log: Log, made_at: int | None) -> str | None:
    if made_at is not None and log.created_at is not None and log.created_at > made_at:
        return "other_topic"
    if offset is None or log.end is None:
        return None
    if offset > log.end:
        return "beyond_end"
    if log.start is None:
        return None
    return "deleted" if offset < log.start else "readable"
