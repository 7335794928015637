"""Who led the internal partitions, who was in sync, and which of it the copies of a dump witness.

A dump of some brokers' disks holds what their leaders wrote only as far as one of these brokers led
or was in sync: the leader waits for all that are in sync before a record counts as committed
(``Partition.maybeIncrementLeaderHW``). The metadata log says who that was, step by step. A broker
that led or was in sync at a step had all that was committed until then; its copy has it too where
it was made after that step. So

- the last step that a copy witnesses makes everything before it whole, on the line of that copy;
- from the first step on that no copy witnesses, and in which somebody led, more may have been
  written: from its time on nothing can be told but what was told before. Where nobody led, nothing
  was written;
- a copy with records of the leader epoch of such a step followed that leader, so that it is whole
  up to its own end, and only what lies behind it is unknown. A copy that never saw that epoch may
  end with records that the new leader never had: in a clean election those above its high
  watermark, in an unclean one any but those of the epochs up to the last of which it was the
  leader itself, where the copy has records of that.

Whether a copy was made after a step is shown by the broker's own metadata log, which it keeps
beside the others: it reaches the record of the step, or it does not. Where that log is not in the
dump, records of the step's epoch show it, else the time of the last record of the copy. Where
nothing shows it, the copy is no witness.

A broker that is killed is named as the leader until its session ends: when several are killed at
once, the controller may even elect one of the dead. Of a leader that is gone again so soon after
the last sign of life on its disk nothing is missing.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from analytics.dump.copies.epochs import NO_EPOCH

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


NOTHING_KNOWN: Final = Leaders()
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
