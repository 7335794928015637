"""A share coordinator that replays one record after the other, slowly and plainly.

Written from what is known of Kafka's ``ShareCoordinatorShard`` alone, with a dictionary from offset
to delivery state in place of ranges, to be held against the replay. It knows nothing of columns.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from tests.support.broker_state import CutBatch, joined

UNCHANGED = -1
ShareKey = tuple[str, str, int]


@dataclass(frozen=True)
class Snapshot:
    """A ShareSnapshot value; ``batches`` as stored."""

    snapshot_epoch: int
    state_epoch: int
    leader_epoch: int
    start_offset: int
    delivery_complete_count: int
    create_timestamp: int
    write_timestamp: int
    batches: tuple[CutBatch, ...]


@dataclass(frozen=True)
class Update:
    """A ShareUpdate value."""

    snapshot_epoch: int
    leader_epoch: int
    start_offset: int
    delivery_complete_count: int
    batches: tuple[CutBatch, ...]


@dataclass(frozen=True)
class ShareRecord:
    """One record of a partition of ``__share_group_state``; ``value`` None is a snapshot's end."""

    partition: int
    offset: int
    key: ShareKey
    value: Snapshot | Update | None


@dataclass
class ShareState:
    """What is known of one share partition.

    ``delivery`` has (delivery count, state) by offset: the greatest pair wins. Times are 0 where no
    snapshot gave them.
    """

    snapshot_epoch: int
    state_epoch: int
    leader_epoch: int
    start_offset: int
    delivery_complete_count: int
    create_timestamp: int
    write_timestamp: int
    record_offset: int
    has_snapshot: bool
    updates: int = 0
    mismatches: int = 0
    delivery: dict[int, tuple[int, int]] = field(default_factory=dict)

    @property
    def batches(self) -> tuple[CutBatch, ...]:
        """The ranges, ascending and joined."""
        return joined(
            CutBatch(offset, offset, state, count)
            for offset, (count, state) in self.delivery.items()
        )

    def combine(self, batches: Iterable[CutBatch]) -> None:
        """Merge ranges: the higher count, then the higher state, whichever came first."""
        for batch in batches:
            for offset in range(batch.first_offset, batch.last_offset + 1):
                told = (batch.delivery_count, batch.delivery_state)
                self.delivery[offset] = max(self.delivery.get(offset, told), told)

    def prune(self) -> None:
        """Forget what lies below the start offset."""
        if self.start_offset != UNCHANGED:
            kept = {at: what for at, what in self.delivery.items() if at >= self.start_offset}
            self.delivery = kept


class ReferenceShareCoordinator:
    """All states, by internal partition and key."""

    def __init__(self) -> None:
        self.states: dict[tuple[int, ShareKey], ShareState] = {}

    def replay(self, record: ShareRecord) -> None:
        """Apply the next record of its partition."""
        place = record.partition, record.key
        value = record.value
        if value is None:
            self.states.pop(place, None)
        elif isinstance(value, Snapshot):
            self.states[place] = _of_snapshot(value, record.offset)
        elif place in self.states:
            _apply(self.states[place], value, record.offset)
        else:
            self.states[place] = _of_update(value, record.offset)


def _of_snapshot(value: Snapshot, offset: int) -> ShareState:
    state = ShareState(
        snapshot_epoch=value.snapshot_epoch,
        state_epoch=value.state_epoch,
        leader_epoch=value.leader_epoch,
        start_offset=value.start_offset,
        delivery_complete_count=value.delivery_complete_count,
        create_timestamp=value.create_timestamp,
        write_timestamp=value.write_timestamp,
        record_offset=offset,
        has_snapshot=True,
    )
    state.combine(value.batches)
    return state


def _of_update(value: Update, offset: int) -> ShareState:
    """Nothing is known: the update is the state, in state epoch 0 and of no time."""
    state = ShareState(
        snapshot_epoch=value.snapshot_epoch,
        state_epoch=0,
        leader_epoch=value.leader_epoch,
        start_offset=value.start_offset,
        delivery_complete_count=value.delivery_complete_count,
        create_timestamp=0,
        write_timestamp=0,
        record_offset=offset,
        has_snapshot=False,
        updates=1,
    )
    state.combine(value.batches)
    return state


def _apply(state: ShareState, value: Update, offset: int) -> None:
    """Apply an update, whatever snapshot it names."""
    if value.start_offset != UNCHANGED:
        state.start_offset = value.start_offset
    if value.leader_epoch != UNCHANGED:
        state.leader_epoch = value.leader_epoch
    state.delivery_complete_count = value.delivery_complete_count
    state.updates += 1
    state.mismatches += value.snapshot_epoch != state.snapshot_epoch
    state.record_offset = offset
    state.combine(value.batches)
    state.prune()
