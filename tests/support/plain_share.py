"""What `share_backlog` and the tables beside it must say of a printed log of share state.

Written from docs/share.md: an offset at a time, as a leader counts them. States are those of
the reference of the share coordinator.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from tests.support.broker_state import CutBatch
from tests.support.reference_share_coordinator import (
    ReferenceShareCoordinator,
    ShareKey,
    ShareRecord,
    ShareState,
    Snapshot,
    Update,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from tests.support.plain_log import PlainRecord

AVAILABLE, ACKNOWLEDGED, ARCHIVING, ARCHIVED = 0, 2, 3, 4
FINAL = (ACKNOWLEDGED, ARCHIVED)
WORDS = {
    AVAILABLE: "AVAILABLE",
    ACKNOWLEDGED: "ACKNOWLEDGED",
    ARCHIVING: "ARCHIVING",
    ARCHIVED: "ARCHIVED",
}
NOT_STORED = "NOT_STORED"
UNKNOWN = -1
DELIVERY_LIMIT = 5
Row = dict[str, Any]


@dataclass
class PlainSharePartition:
    """What was written of a share partition since its state was last initialised."""

    state: ShareState
    next: int | None = None
    next_since: int | None = None
    archived: dict[int, tuple[int, int]] = field(default_factory=dict)

    @property
    def start(self) -> int | None:
        """The start offset, where there is one yet."""
        return None if self.state.start_offset == UNKNOWN else self.state.start_offset

    @property
    def last(self) -> int | None:
        """The last offset with a stored state."""
        return max(self.state.delivery, default=None)

    def window(self) -> list[tuple[int, str, int | None]]:
        """Return each offset from the start offset to the last stored: its state and count."""
        if self.start is None or self.last is None:
            return []
        found: list[tuple[int, str, int | None]] = []
        for offset in range(self.start, self.last + 1):
            stored = self.state.delivery.get(offset)
            if stored is None:
                found.append((offset, NOT_STORED, None))
            else:
                found.append((offset, WORDS[stored[1]], stored[0]))
        return found

    def first_not_done(self) -> int | None:
        """Return the first offset that is not finally dealt with."""
        done = {WORDS[each] for each in FINAL}
        for offset, word, _ in self.window():
            if word not in done:
                return offset
        if self.start is None:
            return None
        return self.start if self.last is None else max(self.start, self.last + 1)


class PlainShare:
    """The share partitions of one partition of `__share_group_state`."""

    def __init__(self) -> None:
        self._coordinator = ReferenceShareCoordinator()
        self.partitions: dict[ShareKey, PlainSharePartition] = {}

    def replay(self, records: Iterable[PlainRecord]) -> None:
        """Apply records, and note after each what has changed."""
        for record in records:
            if record.control_type is None:
                self._apply(record)

    def _apply(self, record: PlainRecord) -> None:
        key = record.key["group_id"], record.key["topic_id"], record.key["partition"]
        self._coordinator.replay(
            ShareRecord(record.partition, record.offset, key, _value_of(record))
        )
        state = self._coordinator.states.get((record.partition, key))
        if state is None:
            self.partitions.pop(key, None)
            return
        known = self.partitions.get(key)
        if known is None or known.state.state_epoch != state.state_epoch:
            known = self.partitions[key] = PlainSharePartition(state)
        known.state = state
        if (following := known.first_not_done()) != known.next:
            known.next, known.next_since = following, record.timestamp
        for offset, (count, said) in state.delivery.items():
            if said == ARCHIVED:
                known.archived.setdefault(offset, (record.offset, count))

    def rows(
        self, ends: Mapping[tuple[str, int], int], limits: Mapping[str, int]
    ) -> dict[ShareKey, Row]:
        """Return the columns of `share_backlog` that are held against this.

        Args:
            ends: Where logs end, by the topic's id and the partition, as far as it is known.
            limits: How often a record is delivered, of groups with a limit of their own.
        """
        return {
            key: _row(each, limits.get(key[0], DELIVERY_LIMIT)) | _left(each, ends.get(key[1:]))
            for key, each in self.partitions.items()
        }

    def counts(self) -> dict[ShareKey, Counter[tuple[int, str]]]:
        """Return the rows of `share_delivery_counts`: offsets by their count and state."""
        return {
            key: Counter((count, WORDS[said]) for count, said in each.state.delivery.values())
            for key, each in self.partitions.items()
            if each.state.delivery
        }


def _value_of(record: PlainRecord) -> Snapshot | Update | None:
    value = record.value
    if value is None:
        return None
    batches = tuple(
        CutBatch(
            each["first_offset"],
            each["last_offset"],
            each["delivery_state"],
            each["delivery_count"],
        )
        for each in value["state_batches"]
    )
    epochs = value["snapshot_epoch"], value["leader_epoch"], value["start_offset"]
    complete = value.get("delivery_complete_count", UNKNOWN)
    if record.table == "share_update":
        return Update(*epochs, complete, batches)
    return Snapshot(
        snapshot_epoch=epochs[0],
        state_epoch=value["state_epoch"],
        leader_epoch=epochs[1],
        start_offset=epochs[2],
        delivery_complete_count=complete,
        create_timestamp=value.get("create_timestamp", 0),
        write_timestamp=value.get("write_timestamp", 0),
        batches=batches,
    )


def _undone(window: list[tuple[int, str, int | None]]) -> int:
    return sum(word not in {WORDS[each] for each in FINAL} for _, word, _ in window)


def _left(partition: PlainSharePartition, end: int | None) -> Row:
    """Return what is left up to the end of the log; nothing where that is not known."""
    if end is None:
        return {}
    start, last = partition.start, partition.last
    row: Row = {"log_end_offset": end, "lag": None, "records_left": None}
    if start is not None:
        behind = end - (start if last is None else max(start, last + 1))
        row["records_left"] = _undone(partition.window()) + behind
        complete = partition.state.delivery_complete_count
        if complete != UNKNOWN:
            row["lag"] = end - start - complete
    return row


def _row(partition: PlainSharePartition, limit: int) -> Row:
    state, window = partition.state, partition.window()
    words = Counter(word for _, word, _ in window)
    start, last = partition.start, partition.last
    complete = state.delivery_complete_count
    return {
        "start_offset": start,
        "next_offset": partition.next,
        "start_moved_at": None if start is None else partition.next_since,
        "last_stored_offset": last,
        "in_flight": _undone(window),
        "available_count": words[WORDS[AVAILABLE]],
        "archiving_count": words[WORDS[ARCHIVING]],
        "not_stored_count": words[NOT_STORED],
        "acknowledged_count": words[WORDS[ACKNOWLEDGED]],
        "archived_count": words[WORDS[ARCHIVED]],
        "delivery_complete_count": None if complete == UNKNOWN else complete,
        "near_limit_count": sum(
            word == WORDS[AVAILABLE] and (count or 0) >= limit - 1 for _, word, count in window
        ),
        "max_delivery_count": max((count for count, _ in state.delivery.values()), default=None),
        "state_epoch": state.state_epoch,
        "snapshot_epoch": state.snapshot_epoch,
        "leader_epoch": state.leader_epoch,
        "record_offset": state.record_offset,
        "window_offsets": sum(offset >= (partition.next or 0) for offset, _, _ in window),
        **_blocking(partition, window),
    }


def _blocking(partition: PlainSharePartition, window: list[tuple[int, str, int | None]]) -> Row:
    names = ("first_offset", "last_offset", "state", "delivery_count")
    beyond = [each for each in window if each[0] >= (partition.next or 0)]
    if not beyond:
        return {f"blocking_{name}": None for name in names}
    first, word, count = beyond[0]
    last = first
    for offset, *what in beyond:
        if what != [word, count]:
            break
        last = offset
    return dict(
        zip((f"blocking_{name}" for name in names), (first, last, word, count), strict=True)
    )
