"""What a broker answers about groups, offsets and share partitions, as plain values.

The notes at each field say what an answer cannot show; `tests.support.cuts` says what a cut cannot.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable


@dataclass(frozen=True, order=True)
class CutGroup:
    """One group in the broker's own words.

    ``group_type`` is classic, consumer, share or streams; a simple group is ``classic`` with an
    empty ``protocol_type``. ``epoch`` and ``assignment_epoch`` are None for classic groups, whose
    generation no answer holds. ``protocol`` is the assignor; None where there is none.
    """

    group_id: str
    group_type: str
    protocol_type: str
    state: str
    epoch: int | None
    assignment_epoch: int | None
    protocol: str | None
    member_count: int


@dataclass(frozen=True)
class CutMember:
    """One member; a field its group's kind of answer does not have is None.

    ``subscribed_topics`` is sorted. ``subscription`` and ``assignment`` are the bytes a classic
    member brought and was given.
    """

    group_id: str
    group_type: str
    member_id: str
    group_instance_id: str | None
    client_id: str
    client_host: str
    rack_id: str | None
    member_epoch: int | None
    subscribed_topics: tuple[str, ...] | None
    subscribed_regex: str | None
    is_classic: bool | None
    process_id: str | None = None
    topology_epoch: int | None = None
    subscription: bytes | None = None
    assignment: bytes | None = None


@dataclass(frozen=True)
class CutAssignment:
    """One partition of a member. ``kind`` is current or target.

    ``topic_id`` is None for classic groups; streams groups have a ``role`` (active, standby,
    warmup) and a ``subtopology_id`` and no topic.
    """

    group_id: str
    member_id: str
    kind: str
    role: str | None
    subtopology_id: str | None
    topic: str | None
    topic_id: str | None
    partition: int


@dataclass(frozen=True, order=True)
class CutOffset:
    """One committed offset; ``leader_epoch`` is None where it was -1 or not answered."""

    group_id: str
    topic: str
    partition: int
    committed_offset: int
    leader_epoch: int | None
    metadata: str


@dataclass(frozen=True, order=True)
class CutBatch:
    """A range of offsets in one delivery state; neighbours that are alike are joined."""

    first_offset: int
    last_offset: int
    delivery_state: int
    delivery_count: int


@dataclass(frozen=True)
class CutSharePartition:
    """One share partition as the share coordinator has it (ReadShareGroupState).

    ``exists`` is false where it had no state at all; the other fields mean nothing then.
    ``start_offset`` is None where it is -1: known, but not positioned. ``leader_epoch`` and
    ``lag`` come from DescribeShareGroupOffsets and are None where that has none; ``lag`` is also
    None where it was -1, that is, where the delivery-complete count is not known.
    """

    group_id: str
    topic_id: str
    topic: str
    partition: int
    exists: bool
    state_epoch: int
    start_offset: int | None
    leader_epoch: int | None
    lag: int | None
    batches: tuple[CutBatch, ...]

    @property
    def key(self) -> tuple[str, str, int]:
        """Group, topic id and partition."""
        return self.group_id, self.topic_id, self.partition


@dataclass(frozen=True)
class BrokerState:
    """Everything brokers of a release answered at one moment, sorted by key.

    ``left_since`` has the groups that were listed in a state and described as Empty right after,
    with the state they were listed in: the sessions of their members ended meanwhile.
    ``asked_for_pending`` is false where it does not say which offsets are pending.
    """

    release: str
    groups: tuple[CutGroup, ...]
    members: tuple[CutMember, ...]
    assignments: tuple[CutAssignment, ...]
    committed_offsets: tuple[CutOffset, ...]
    unstable_offsets: tuple[tuple[str, str, int], ...]
    share_partitions: tuple[CutSharePartition, ...]
    left_since: tuple[tuple[str, str], ...] = ()
    asked_for_pending: bool = True

    @property
    def size(self) -> int:
        """How many groups, members, assigned partitions, offsets and share partitions it has."""
        offsets = len(self.committed_offsets) + len(self.unstable_offsets)
        groups = len(self.groups) + len(self.members) + len(self.assignments)
        return groups + offsets + len(self.share_partitions)


def joined(batches: Iterable[CutBatch]) -> tuple[CutBatch, ...]:
    """Join neighbours that are alike: brokers before 4.4 sometimes leave two of them apart."""
    result: list[CutBatch] = []
    for batch in sorted(batches):
        last = result[-1] if result else None
        if (
            last is not None
            and last.last_offset + 1 == batch.first_offset
            and last.delivery_state == batch.delivery_state
            and last.delivery_count == batch.delivery_count
        ):
            result[-1] = CutBatch(
                last.first_offset, batch.last_offset, last.delivery_state, last.delivery_count
            )
        else:
            result.append(batch)
    return tuple(result)
