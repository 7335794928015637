"""Checkpoints of a group, merged from contributions, and where members would read on from them."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Final

from analytics.seeds.region.contributions import (
    MERGE,
    CheckpointKey,
    Contribution,
    Matched,
    Member,
    Partition,
)

# Checkpoints of a group, merged from what its operators contributed.
#
# As the job control plane of a consistent region merges them: under the sequence id alone,
# whatever the reset attempt; an operator counts once; complete with as many distinct names as the
# set names has, and where sets differ the largest counts. Unlike it, the order in which
# contributions arrive decides nothing: where two name a partition with different offsets, its
# owner's counts, or none.

Owners = Callable[[CheckpointKey, Partition, Sequence[str]], str | None]
"""Returns which of some operators had a partition when a checkpoint was made; None: not known."""


@dataclass(frozen=True)
class MergedOffset:
    """Where a partition is read on from.

    Attributes:
        offset: The next offset to read; None where it cannot be told.
        operators: Who names the partition.
        named: Who names which offset, where they differ.
        decided_by: The owner whose offset was taken, where they differ.
        markers: What stands instead of an offset, in words.
    """

    offset: int | None
    operators: tuple[str, ...]
    named: tuple[tuple[str, int | None], ...] = ()
    decided_by: str | None = None
    markers: tuple[str, ...] = ()

    @property
    def missing(self) -> str | None:
        """Why the offset cannot be told, None where it can."""
        if self.offset is not None:
            return None
        if self.named:
            return f"operators name different offsets: {', '.join(self.offsets_in_words)}"
        if self.markers:
            return f"the checkpoint has {' and '.join(self.markers)} instead of an offset of it"
        return "the checkpoint has no offset of it: nothing of it had been read"

    @property
    def offsets_in_words(self) -> list[str]:
        """Who names which offset, in words."""
        return [f"{name}: {'none' if each is None else each}" for name, each in self.named]


@dataclass(frozen=True)
class Checkpoint:
    """A checkpoint of a group.

    Attributes:
        key: Which one.
        contributions: Its contributions, in the order of their times.
        late: Those that came after the merge timeout.
        offsets: The merged map.
    """

    key: CheckpointKey
    contributions: tuple[Contribution, ...]
    late: tuple[Contribution, ...] = ()
    offsets: Mapping[Partition, MergedOffset] = field(default_factory=dict)

    @property
    def contributors(self) -> list[str]:
        """The distinct operators that have contributed."""
        return sorted({name for each in self.contributions for name in each.contributors})

    @property
    def sets(self) -> list[frozenset[str]]:
        """The distinct sets of names, the largest first."""
        found = {frozenset(each.operators) for each in self.contributions if each.operators}
        return sorted(found, key=lambda each: (-len(each), sorted(each)))

    @property
    def expected(self) -> int | None:
        """How many operators the group had: the largest number counts."""
        said = [each.expected for each in self.contributions if each.expected is not None]
        return max(said, default=None)

    @property
    def absent(self) -> list[str]:
        """Operators that a set names and that have not contributed."""
        return sorted(frozenset().union(*self.sets) - set(self.contributors))

    @property
    def strangers(self) -> list[str]:
        """Operators that have contributed and that no set names."""
        named = frozenset().union(*self.sets)
        return sorted(set(self.contributors) - named) if named else []

    @property
    def is_finished(self) -> bool:
        """Whether its writer finished it, as far as the form says."""
        return all(each.is_finished is not False for each in self.contributions)

    @property
    def unusable(self) -> str | None:
        """Why its writer cannot go on from any checkpoint, None where it can."""
        return next((each.unusable for each in self.contributions if each.unusable), None)

    @property
    def is_merged(self) -> bool:
        """Whether the group took it for merged."""
        enough = self.expected is not None and len(self.contributors) >= self.expected
        return enough and self.is_finished

    @property
    def conflicts(self) -> list[Partition]:
        """Partitions of which it cannot be told which offset counts."""
        return sorted(
            key for key, each in self.offsets.items() if each.named and each.offset is None
        )

    @property
    def missing(self) -> str | None:
        """What it lacks, in words; None where every offset of it can be told."""
        reasons = []
        if self.expected is None:
            reasons.append("nothing says which operators the group had")
        if self.absent:
            reasons.append(f"{', '.join(self.absent)} did not contribute")
        elif not self.is_merged and self.expected is not None and self.is_finished:
            count = len(self.contributors)
            reasons.append(f"{count} of {self.expected} operators contributed")
        if not self.is_finished:
            reasons.append("its writer never finished it")
        if untold := sum(each.offset is None for each in self.offsets.values()):
            reasons.append(f"offsets of {untold} partitions cannot be told")
        return "; ".join(reasons) or None

    @property
    def last_at(self) -> int | None:
        """When the last contribution was made, in epoch milliseconds."""
        return max((each.at for each in self.contributions if each.at is not None), default=None)

    @property
    def made_at(self) -> int | None:
        """When every operator had made its checkpoint: resets to it came later."""
        first: dict[tuple[str, ...], int] = {}
        for each in self.contributions:
            if each.at is not None:
                first[each.contributors] = min(each.at, first.get(each.contributors, each.at))
        return max(first.values(), default=None)

    @property
    def first_at(self) -> int | None:
        """When the first contribution was made, in epoch milliseconds."""
        return min((each.at for each in self.contributions if each.at is not None), default=None)

    @property
    def region_indexes(self) -> list[int]:
        """The consistent regions that contributions name."""
        return sorted(
            {each.region_index for each in self.contributions if each.region_index is not None}
        )

    @property
    def repeats(self) -> int:
        """How many contributions were made by an operator that had contributed before."""
        made = sum(len(each.contributors) for each in self.contributions)
        return made - len(self.contributors)


def merged(
    contributions: Iterable[Contribution], timeout_ms: int, owners: Owners | None = None
) -> list[Checkpoint]:
    """Return the checkpoints, in the order of their groups and sequence ids.

    Args:
        contributions: Of any number of groups, in any order.
        timeout_ms: For so long an operator waits for the others.
        owners: Tells who had a partition then.
    """
    by_key: dict[CheckpointKey, list[Contribution]] = defaultdict(list)
    for each in contributions:
        by_key[each.key].append(each)
    return [
        _merged(key, by_key[key], timeout_ms, owners)
        for key in sorted(by_key, key=lambda each: each.order)
    ]


def _merged(
    key: CheckpointKey,
    contributions: Sequence[Contribution],
    timeout_ms: int,
    owners: Owners | None,
) -> Checkpoint:
    in_order = sorted(
        contributions,
        key=lambda each: (each.at is None, each.at or 0, each.contributors, each.offsets),
    )
    named: dict[Partition, dict[str, set[int | None]]] = defaultdict(lambda: defaultdict(set))
    for each in in_order:
        for partition, offset in each.offsets:
            for name in _namers(each):
                named[partition][name].add(offset)
    markers: dict[Partition, set[str]] = defaultdict(set)
    for each in in_order:
        for partition, marker in each.markers:
            markers[partition].add(marker)
    offsets = {
        partition: replace(
            _offset(key, partition, named[partition], owners),
            markers=tuple(sorted(markers.get(partition, ()))),
        )
        for partition in sorted(named)
    }
    return Checkpoint(key, tuple(in_order), tuple(_late(in_order, timeout_ms)), offsets)


def _namers(contribution: Contribution) -> tuple[str, ...]:
    """Return who names the partitions: of a merge it is not known which of them did."""
    return ("merge",) if contribution.key.form == MERGE else contribution.contributors


def _offset(
    key: CheckpointKey,
    partition: Partition,
    named: Mapping[str, set[int | None]],
    owners: Owners | None,
) -> MergedOffset:
    operators = tuple(sorted(named)) if key.form != MERGE else ()
    offsets = {offset for each in named.values() for offset in each}
    if len(offsets) == 1:
        return MergedOffset(offsets.pop(), operators)
    said = tuple(
        (name, offset)
        for name in sorted(named)
        for offset in sorted(named[name], key=lambda each: -1 if each is None else each)
    )
    owner = owners(key, partition, operators) if owners is not None else None
    of_owner = named.get(owner, set()) if owner is not None else set()
    if len(of_owner) == 1:
        return MergedOffset(next(iter(of_owner)), operators, said, owner)
    return MergedOffset(None, operators, said)


def _late(contributions: Sequence[Contribution], timeout_ms: int) -> Iterable[Contribution]:
    """Yield what came when the others had stopped waiting; each reset attempt waits anew."""
    first: dict[int | None, int] = {}
    for each in contributions:
        if each.at is not None:
            begun = first.setdefault(each.reset_attempt, each.at)
            if each.at - begun > timeout_ms:
                yield each


# Where members would read on from if the latest complete checkpoint were restored at the instant.
#
# A partition that a member has is sought to the offset of the merged checkpoint, else to the
# initial offset that the group keeps of it, else to the start position that its operators are
# given.

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
    offset, basis, missing = _offset_sought(said, partition, present, log)
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


def _offset_sought(
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
