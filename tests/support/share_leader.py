"""A leader of a share partition that acts at random, and knows after each record what it wrote.

Written from what is known of Kafka's ``SharePartition``: a dictionary from offset to delivery
state, and one record for each thing that happens. What it says of itself is the truth that an
evaluation of its records is held against; it knows nothing of ranges, columns or sweeps.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from tests.support.broker_state import CutBatch, joined
from tests.support.reference_share_coordinator import ShareKey, ShareRecord, Snapshot, Update

if TYPE_CHECKING:
    from random import Random

AVAILABLE, ACKNOWLEDGED, ARCHIVED = 0, 2, 4
FINAL = (ACKNOWLEDGED, ARCHIVED)
NOT_STORED = 5
UNKNOWN = -1


@dataclass(frozen=True)
class Blocking:
    """The range at the next offset; `state` is `NOT_STORED`, and no count, where nothing is."""

    first: int
    last: int
    state: int
    count: int | None


@dataclass(frozen=True)
class Truth:
    """What the leader has written, after a record of its own.

    Attributes:
        start: The start offset in the record; -1 before there is one.
        next: The first offset that is not finally dealt with.
        stored: Delivery state and count by offset, from the start offset on.
        moved: The first record after which `next` was what it is.
        archived: By offset, the record that archived it and the delivery count then.
        is_there: Whether there is a state at all.
    """

    start: int
    next: int
    stored: dict[int, tuple[int, int]]
    moved: int
    archived: dict[int, tuple[int, int]]
    is_there: bool = True

    @property
    def window_last(self) -> int:
        """The last offset with a stored state, or the one before the start offset."""
        return max(self.stored, default=self.start - 1)

    @property
    def blocking(self) -> Blocking | None:
        """What comes at the next offset, where something is stored there or beyond."""
        if not any(offset >= self.next for offset in self.stored):
            return None
        what = self.stored.get(self.next)
        last = self.next
        while last < self.window_last and self.stored.get(last + 1) == what:
            last += 1
        return Blocking(self.next, last, *(what if what is not None else (NOT_STORED, None)))

    def offsets_in(self, *states: int) -> int:
        """How many offsets are stored in one of these states."""
        return sum(state in states for state, _ in self.stored.values())

    @property
    def left(self) -> int:
        """Offsets of the window that are not finally dealt with."""
        return sum(
            self.stored.get(offset, (AVAILABLE, 0))[0] not in FINAL
            for offset in range(max(self.start, 0), self.window_last + 1)
        )


@dataclass
class ShareLeader:
    """One share partition; `records` and `truths` grow together.

    Attributes:
        random: What happens.
        key: The share partition.
        limit: After so many deliveries a record is archived.
        snapshot_every: After so many updates a snapshot is written.
    """

    random: Random
    key: ShareKey = ("g", "topic", 0)
    partition: int = 0
    limit: int = 3
    snapshot_every: int = 7
    records: list[ShareRecord] = field(default_factory=list)
    truths: list[Truth] = field(default_factory=list)
    end: int = 0
    start: int = UNKNOWN
    state_epoch: int = -1
    snapshot_epoch: int = -1
    leader_epoch: int = 0
    updates: int = 0
    counts: dict[int, int] = field(default_factory=dict)
    acquired: set[int] = field(default_factory=set)
    stored: dict[int, tuple[int, int]] = field(default_factory=dict)
    archived: dict[int, tuple[int, int]] = field(default_factory=dict)
    moved: int = 0

    def act(self) -> None:
        """Do one of the things that leaders, members and operators do."""
        if self.state_epoch < 0:
            self.initialize(self.random.choice((UNKNOWN, UNKNOWN, 0)))
            return
        choice = self.random.randrange(40)
        if choice < 8:
            self.end += self.random.randrange(1, 9)
        elif choice < 20:
            self.acquire()
        elif choice < 35:
            self.settle()
        elif choice < 37:
            self.snapshot()
        elif choice == 37:
            self.lead_anew()
        elif choice == 38:
            self.initialize(self.random.randrange(self.end + 1))
        elif self.random.randrange(4) == 0:
            self.delete()

    def initialize(self, start: int) -> None:
        """Create the state, or set the start offset anew."""
        self.state_epoch += 1
        self.start, self.leader_epoch = start, 0
        for kept in (self.counts, self.acquired, self.stored, self.archived):
            kept.clear()
        self._write_snapshot(len(self.records))
        self.moved = len(self.records) - 1
        self._tell()

    def delete(self) -> None:
        """Delete the state."""
        self.records.append(ShareRecord(self.partition, len(self.records), self.key, None))
        self.state_epoch, self.snapshot_epoch, self.start = -1, -1, UNKNOWN
        self.truths.append(Truth(UNKNOWN, UNKNOWN, {}, UNKNOWN, {}, is_there=False))

    def acquire(self) -> None:
        """Hand out some records; no record tells."""
        if self.start == UNKNOWN:
            self.start = self.random.randrange(self.end + 1)
        free = [
            offset
            for offset in range(self.start, self.end)
            if offset not in self.acquired and self.stored.get(offset, (0, 0))[0] == AVAILABLE
        ]
        for offset in free[: self.random.randrange(1, 9)]:
            self.acquired.add(offset)
            self.counts[offset] = self.counts.get(offset, 0) + 1

    def settle(self) -> None:
        """Members accept, release or reject some of what they hold, or lose their locks."""
        held = sorted(self.acquired)
        if not held:
            return
        first = self.random.randrange(len(held))
        chosen = held[first : first + self.random.randrange(1, 6)]
        batches = []
        for offset in chosen:
            state = self.random.choice((ACKNOWLEDGED, ACKNOWLEDGED, AVAILABLE, ARCHIVED))
            if state == AVAILABLE and self.counts[offset] >= self.limit:
                state = ARCHIVED
            self.acquired.discard(offset)
            self.stored[offset] = (state, self.counts[offset])
            if state == ARCHIVED:
                self.archived[offset] = (len(self.records), self.counts[offset])
            batches.append(CutBatch(offset, offset, state, self.counts[offset]))
        self._write(tuple(joined(batches)))

    def lead_anew(self) -> None:
        """Another leader takes over: locks are gone, and what it loads may move the start."""
        self.leader_epoch += 1
        self.acquired.clear()
        self.counts = {offset: count for offset, (_, count) in self.stored.items()}
        self._write(())

    def snapshot(self) -> None:
        """Renew the state of a partition that is idle, as the coordinator does by itself."""
        self._write_snapshot(len(self.records))
        self._tell()

    def _write(self, batches: tuple[CutBatch, ...]) -> None:
        if self.updates >= self.snapshot_every:
            self._write_snapshot(len(self.records))
        else:
            value = Update(
                self.snapshot_epoch, self.leader_epoch, self.start, self._complete(), batches
            )
            self.records.append(ShareRecord(self.partition, len(self.records), self.key, value))
            self.updates += 1
        self._tell()

    def _write_snapshot(self, offset: int) -> None:
        self.snapshot_epoch += 1
        self.updates = 0
        kept = {at: what for at, what in self.stored.items() if at >= self.start}
        batches = joined(CutBatch(at, at, state, count) for at, (state, count) in kept.items())
        value = Snapshot(
            self.snapshot_epoch, self.state_epoch, self.leader_epoch, self.start,
            self._complete(), 1_700_000_000_000, 1_700_000_000_000, tuple(batches),
        )  # fmt: skip
        self.records.append(ShareRecord(self.partition, offset, self.key, value))

    def _complete(self) -> int:
        if self.start == UNKNOWN:
            return UNKNOWN
        return sum(at >= self.start and state in FINAL for at, (state, _) in self.stored.items())

    def _tell(self) -> None:
        """Say what is known now; then the start offset moves past what is dealt with."""
        written = self.start
        following = written
        while following != UNKNOWN and self.stored.get(following, (AVAILABLE, 0))[0] in FINAL:
            following += 1
        before = self.truths[-1].next if self.truths else UNKNOWN
        if following != before:
            self.moved = len(self.records) - 1
        self.truths.append(
            Truth(
                written,
                following,
                {at: what for at, what in self.stored.items() if at >= written},
                self.moved,
                dict(self.archived),
            )
        )
        self.start = following


def random_leader(random: Random, acts: int, key: ShareKey = ("g", "topic", 0)) -> ShareLeader:
    """Let a leader act."""
    leader = ShareLeader(random, key, limit=random.choice((2, 3, 5)))
    for _ in range(acts):
        leader.act()
    return leader
