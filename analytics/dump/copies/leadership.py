"""Leader epochs of copies, who led and who was in sync, and which of it the copies witness."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import TYPE_CHECKING, Final

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from analytics.dump.batches.headers import Headers

# Leader epochs of one copy of a log, and where two copies part by them (KIP-101, KIP-279).

NO_EPOCH = -1
_MOST_EPOCHS = 1000


@dataclass(frozen=True)
class EpochLine:
    """The epochs of a copy, ascending, each with its first offset, and where the copy ends.

    Attributes:
        entries: Epochs and their first offsets.
        end_offset: Of the copy.
        witnessed: The newest epoch in which its broker led or was in sync, by the metadata log; -1
            where that is not known.
    """

    entries: tuple[tuple[int, int], ...]
    end_offset: int
    witnessed: int = NO_EPOCH

    @property
    def latest(self) -> int:
        """The newest epoch, one in which nothing was written included; -1 without any."""
        return self.entries[-1][0] if self.entries else NO_EPOCH

    @property
    def newest(self) -> int:
        """The newest epoch that the copy, or the metadata log of its broker, knows."""
        return max(self.latest, self.witnessed)

    def end_of(self, epoch: int) -> tuple[int, int]:
        """Return the largest epoch up to ``epoch`` and its end offset (OffsetsForLeaderEpoch).

        Where there is none so old, epoch -1 and the first offset of the oldest.
        """
        at = bisect_right(self.entries, epoch, key=lambda entry: entry[0])
        found = self.entries[at - 1][0] if at else NO_EPOCH
        end = self.entries[at][1] if at < len(self.entries) else self.end_offset
        return found, min(end, self.end_offset)

    def at(self, offset: int) -> int:
        """Return the epoch that covers an offset, -1 where none does."""
        at = bisect_right(self.entries, offset, key=lambda entry: entry[1])
        return self.entries[at - 1][0] if at else NO_EPOCH


def epoch_line(
    checkpointed: Iterable[tuple[int, int]],
    batch_epochs: NDArray[np.int32],
    base_offsets: NDArray[np.int64],
    end_offset: int,
) -> EpochLine:
    """Put the epochs of a checkpoint and those of batches together.

    The checkpoint knows epochs in which nothing was written, and starts that compaction has
    removed from the batches; the batches know what a copied checkpoint was too old for.
    """
    starts = dict(checkpointed)
    if batch_epochs.size:
        first = np.flatnonzero(np.diff(batch_epochs, prepend=batch_epochs[0] - 1))
        pairs = zip(batch_epochs[first].tolist(), base_offsets[first].tolist(), strict=True)
        for epoch, offset in pairs:
            if epoch > NO_EPOCH:
                starts[epoch] = min(starts.get(epoch, offset), offset)
    entries: list[tuple[int, int]] = []
    for epoch, offset in sorted(starts.items()):
        if not entries or offset >= entries[-1][1]:
            entries.append((epoch, offset))
    return EpochLine(tuple(entries), end_offset)


def are_plausible(parts: Iterable[Headers], noted: Sequence[tuple[int, int]]) -> bool:
    """Whether the epochs of batches only grow and agree with the broker's own notes.

    No checksum covers them: a bit that flips would look like an election.

    Args:
        parts: Batches of one file, in its order.
        noted: (epoch, first offset) of the checkpoint beside it.
    """
    line = EpochLine(tuple(noted), 0)
    newest = NO_EPOCH
    for part in parts:
        changes = np.flatnonzero(np.diff(part.leader_epoch)) + 1
        for first, end in pairwise([0, *changes[:_MOST_EPOCHS].tolist(), len(part)]):
            epoch = int(part.leader_epoch[first])
            at = {line.at(int(part.base_offset[row])) for row in (first, end - 1)} - {NO_EPOCH}
            if epoch != NO_EPOCH and (epoch < newest or at - {epoch}):
                return False
            newest = max(newest, epoch)
        if changes.size > _MOST_EPOCHS:
            return False
    return True


def truncation_offset(other: EpochLine, leader: EpochLine) -> int:
    """Return the offset to which a copy would be cut back if it followed the leader.

    The follower asks for the end of its newest epoch, takes the leader's answer, and goes on with
    an older epoch until both know the same one (AbstractFetcherThread). Copies without epochs
    (formats 0 and 1) are cut to the shorter one.
    """
    if not other.entries or not leader.entries:
        return min(other.end_offset, leader.end_offset)
    epoch = other.latest
    while True:
        leader_epoch, leader_end = leader.end_of(epoch)
        if leader_epoch == NO_EPOCH:
            # All that the leader has is newer.
            return min(leader_end, other.end_offset)
        own_epoch, own_end = other.end_of(leader_epoch)
        if own_epoch in {leader_epoch, NO_EPOCH}:
            return min(leader_end, own_end)
        epoch = own_epoch


# Who led the internal partitions, who was in sync, and which of it the copies of a dump witness.
#
# A dump of some brokers' disks holds what their leaders wrote only as far as one of these brokers
# led or was in sync: the leader waits for all that are in sync before a record counts as
# committed (``Partition.maybeIncrementLeaderHW``). The metadata log says who that was, step by
# step. A broker that led or was in sync at a step had all that was committed until then; its copy
# has it too where it was made after that step. So
#
# - the last step that a copy witnesses makes everything before it whole, on the line of that copy;
# - from the first step on that no copy witnesses, and in which somebody led, more may have been
#   written: from its time on nothing can be told but what was told before. Where nobody led,
#   nothing was written;
# - a copy with records of the leader epoch of such a step followed that leader, so that it is
#   whole up to its own end, and only what lies behind it is unknown. A copy that never saw that
#   epoch may end with records that the new leader never had: in a clean election those above its
#   high watermark, in an unclean one any but those of the epochs up to the last of which it was
#   the leader itself, where the copy has records of that.
#
# Whether a copy was made after a step is shown by the broker's own metadata log, which it keeps
# beside the others: it reaches the record of the step, or it does not. Where that log is not in
# the dump, records of the step's epoch show it, else the time of the last record of the copy.
# Where nothing shows it, the copy is no witness.
#
# A broker that is killed is named as the leader until its session ends: when several are killed
# at once, the controller may even elect one of the dead. Of a leader that is gone again so soon
# after the last sign of life on its disk nothing is missing.

NOBODY: Final = -1
"""As a leader."""
SESSION_MS: Final = 10_000
"""How long after its death a broker may be named as a leader: `broker.session.timeout.ms` by
default, and a second for the controller to notice."""

Key = tuple[str, int]
"""Topic and partition."""


@dataclass(frozen=True)
class Leadership:
    """One leader epoch of a partition.

    Attributes:
        epoch: The leader epoch.
        leader: Node id; -1 is nobody.
        since: Epoch milliseconds; None where a snapshot of the metadata log swallowed the change.
        is_unclean: The leader was elected from outside the ISR.
    """

    epoch: int
    leader: int
    since: int | None
    is_unclean: bool = False


@dataclass(frozen=True)
class Step:
    """A partition's leader and replicas from one record of the metadata log to the next.

    Attributes:
        seen_from: End offset of a metadata log from which on it has the record.
        since: Epoch milliseconds; None where a snapshot of the metadata log swallowed the change.
        epoch: The leader epoch.
        leader: Node id; -1 is nobody.
        in_sync: Node ids of the ISR.
        replicas: Node ids of all replicas.
        is_election: The leader epoch is another one than that of the step before.
        is_unclean: The leader may lack records that were committed.
    """

    seen_from: int
    since: int | None
    epoch: int
    leader: int
    in_sync: frozenset[int] = frozenset()
    replicas: frozenset[int] = frozenset()
    is_election: bool = True
    is_unclean: bool = False

    @property
    def witnesses(self) -> frozenset[int]:
        """Node ids of the brokers that have all that is committed."""
        return self.in_sync if self.leader == NOBODY else self.in_sync | {self.leader}


@dataclass(frozen=True)
class Registered:
    """What the metadata log has of the leaders of a partition.

    Attributes:
        led: Its leader epochs, ascending.
        replicas: How many it had at most.
        steps: Who led and was in sync, in order.
    """

    led: Sequence[Leadership] = ()
    replicas: int = 0
    steps: Sequence[Step] = ()

    @property
    def is_replicated(self) -> bool | None:
        """Whether it ever had more than one replica; None where nothing says."""
        return self.replicas > 1 if self.replicas else None


@dataclass(frozen=True)
class MadeAt:
    """What tells when a broker's copy was made.

    Attributes:
        node_id: The broker; None where the dump does not say.
        metadata_end: End offset of its own metadata log; None where the dump lacks that.
        last_time: Of the last record of that log, else of any internal partition, in epoch
            milliseconds; None where none has a time.
    """

    node_id: int | None
    metadata_end: int | None = None
    last_time: int | None = None


@dataclass(frozen=True)
class Leaders:
    """What a dump knows of leaders.

    Attributes:
        registered: By topic and partition, as the metadata log has it.
        made_at: By copy, when it was made.
        last_time: Of the last record of the metadata log, epoch milliseconds.
    """

    registered: Mapping[Key, Registered] = field(default_factory=dict)
    made_at: Mapping[str, MadeAt] = field(default_factory=dict)
    last_time: int | None = None

    def last_witnessed(self, key: Key, latest_epochs: Mapping[str, int]) -> dict[str, int]:
        """Return by copy the last step of a partition that it witnesses; none of it is left out.

        Args:
            key: Topic and partition.
            latest_epochs: By copy of the partition, the last leader epoch that its own log knows.

        Returns:
            Positions in the steps of the partition.
        """
        steps = self.registered.get(key, Registered()).steps
        copies = {copy: self.made_at.get(copy, MadeAt(None)) for copy in latest_epochs}
        named = {each.node_id for each in copies.values()}
        ends = [*(each.since for each in steps[1:]), self.last_time]
        found: dict[str, int] = {}
        for position, (step, end) in enumerate(zip(steps, ends, strict=False)):
            for copy, made_at in copies.items():
                # A broker without an id is one of the replicas that have no other copy.
                node = made_at.node_id
                may_be = step.replicas - named if node is None else frozenset({node})
                if not may_be or not may_be <= step.witnesses:
                    continue
                is_dead = may_be == {step.leader} and _ends_with_session(made_at, end)
                if is_dead or _is_made_after(step, made_at, latest_epochs[copy]):
                    found[copy] = position
        return found

    def witnessed_epochs(self, key: Key, latest_epochs: Mapping[str, int]) -> dict[str, int]:
        """Return by copy the newest leader epoch in which its broker led or was in sync.

        Args:
            key: Topic and partition.
            latest_epochs: As in `last_witnessed`.
        """
        steps = self.registered.get(key, Registered()).steps
        last = self.last_witnessed(key, latest_epochs)
        return {copy: steps[position].epoch for copy, position in last.items()}


NO_LEADERS: Final = Leaders()
"""Of leaders, where there is no metadata log."""


@dataclass(frozen=True)
class AbsentLeader:
    """A leader whose records no copy of the dump need have.

    Attributes:
        leader: Node id.
        leader_epoch: Its epoch.
        since: From when on it may have written what no copy has, epoch milliseconds; None where
            the time is not known.
        first_offset: From which offset on it may have other records, or more.
    """

    leader: int
    leader_epoch: int
    since: int | None
    first_offset: int


def absent_leaders(
    steps: Sequence[Step],
    last_witnessed: Iterable[int],
    epochs: Mapping[int, int],
    end_offset: int,
    high_watermark: int | None,
) -> list[AbsentLeader]:
    """Return the leaders of a partition after the last step that a copy witnesses, in order.

    Args:
        steps: Of the partition.
        last_witnessed: Of its copies, positions in the steps.
        epochs: The leader epochs that the surviving log of the dump knows, with the first offset
            of each.
        end_offset: Of that log.
        high_watermark: Of that log; None where it is not known.
    """
    found: list[AbsentLeader] = []
    latest_epoch = max(epochs, default=NO_EPOCH)
    for step in steps[max(last_witnessed, default=NO_EPOCH) + 1 :]:
        if step.leader == NOBODY or latest_epoch > step.epoch:
            continue
        if any(each.leader_epoch == step.epoch for each in found):
            continue
        if latest_epoch == step.epoch:
            first = end_offset
        elif step.is_unclean or high_watermark is None:
            first = _first_of_others(step, steps, epochs, end_offset)
        else:
            first = min(high_watermark, end_offset)
        found.append(AbsentLeader(step.leader, step.epoch, step.since, first))
    return found


def _first_of_others(
    elected: Step, steps: Sequence[Step], epochs: Mapping[int, int], end_offset: int
) -> int:
    """Return the first offset of a log that its new leader need not have.

    A log with records of an epoch in which this broker led has them, and all before, from it.
    """
    led = {each.epoch for each in steps if each.leader == elected.leader} & epochs.keys()
    if not led:
        return 0
    return min((first for epoch, first in epochs.items() if epoch > max(led)), default=end_offset)


def _is_made_after(step: Step, made_at: MadeAt, latest_epoch: int) -> bool:
    """Return whether a copy was made after a step."""
    if made_at.metadata_end is not None:
        return made_at.metadata_end >= step.seen_from
    if latest_epoch > step.epoch or (latest_epoch == step.epoch and step.is_election):
        return True
    if made_at.last_time is None or step.since is None:
        return False
    return made_at.last_time >= step.since


def _ends_with_session(made_at: MadeAt, end: int | None) -> bool:
    """Return whether a leader was gone within a session of the last sign of life on its disk."""
    if made_at.metadata_end is None or made_at.last_time is None or end is None:
        return False
    return end <= made_at.last_time + SESSION_MS
