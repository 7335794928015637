"""Random histories of share partitions, well formed and otherwise, and what to make of them."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from tests.support.broker_state import CutBatch
from tests.support.reference_share_coordinator import (
    ReferenceShareCoordinator,
    ShareKey,
    ShareRecord,
    Snapshot,
    Update,
)

if TYPE_CHECKING:
    from collections.abc import Iterable
    from random import Random

STORED_STATES = (0, 2, 3, 4)
TOPIC = "__share_group_state"
MOST_RECORDS = 40


def random_history(random: Random, partition: int) -> list[ShareRecord]:
    """Up to `MOST_RECORDS` records of up to three keys, alone in an internal partition.

    Everything happens that the format allows: updates without a snapshot, snapshots of other
    epochs, start offsets that go back or stay, ranges that overlap, tombstones, holes in the
    offsets.
    """
    keys = [(f"group-{partition}", f"topic-{random.randrange(2)}", each) for each in range(3)]
    records, offset = [], random.randrange(3)
    begin = dict.fromkeys(keys, 0)
    # Most brokers name the start offset in every record.
    leaves_start = random.choice((0, 0, 3))
    for _ in range(random.randrange(MOST_RECORDS)):
        key = keys[random.randrange(1 + random.randrange(3))]
        begin[key] = max(0, begin[key] + random.choice((0, 0, 0, 1, 1, 2, 3, 5, -2)))
        records.append(
            ShareRecord(partition, offset, key, _value(random, begin[key], leaves_start))
        )
        offset += random.choice((1, 1, 1, 1, 2))
    return records


def _value(random: Random, begin: int, leaves_start: int) -> Snapshot | Update | None:
    kind = random.randrange(20)
    if kind == 0:
        return None
    batches = tuple(_batch(random, begin) for _ in range(random.randrange(4)))
    start = -1 if random.randrange(9) < leaves_start else begin
    complete = random.randrange(-1, 4)
    if kind < 3:
        return Snapshot(
            snapshot_epoch=random.randrange(3),
            state_epoch=random.randrange(3),
            leader_epoch=random.randrange(-1, 3),
            start_offset=start,
            delivery_complete_count=complete,
            create_timestamp=random.randrange(1_700_000_000_000, 1_700_000_000_100),
            write_timestamp=random.randrange(1_700_000_000_000, 1_700_000_000_100),
            batches=batches,
        )
    return Update(
        snapshot_epoch=random.randrange(3),
        leader_epoch=random.randrange(-1, 3),
        start_offset=start,
        delivery_complete_count=complete,
        batches=batches,
    )


def _batch(random: Random, begin: int) -> CutBatch:
    first = max(0, begin + random.randrange(-3, 10))
    last = first + random.choice((0, 0, 1, 2, 5))
    return CutBatch(first, last, random.choice(STORED_STATES), random.randrange(1, 4))


def decoded_rows(records: Iterable[ShareRecord]) -> dict[str, list[dict[str, Any]]]:
    """The records as rows of the decoded tables, without what replay does not look at."""
    tables: dict[str, list[dict[str, Any]]] = {"share_snapshot": [], "share_update": []}
    for record in records:
        group, topic_id, partition = record.key
        row = {
            "topic": TOPIC,
            "partition": record.partition,
            "offset": record.offset,
            "value_layout": "4.1+",
            "is_tombstone": record.value is None,
            "key": {"group_id": group, "topic_id": topic_id, "partition": partition},
            "value": None if record.value is None else _decoded(record.value),
        }
        is_update = isinstance(record.value, Update)
        tables["share_update" if is_update else "share_snapshot"].append(row)
    return tables


def _decoded(value: Snapshot | Update) -> dict[str, Any]:
    fields = asdict(value)
    return {**fields, "state_batches": fields.pop("batches")}


def expected_states(
    records: Iterable[ShareRecord], ends: dict[int, int]
) -> dict[tuple[int, ShareKey], dict[str, Any]]:
    """What the reference makes of the records below the end offset of each partition.

    In the words of the state tables: absent is None, times are epoch milliseconds.
    """
    coordinator = ReferenceShareCoordinator()
    for record in records:
        if record.offset < ends.get(record.partition, record.offset + 1):
            coordinator.replay(record)
    found = {}
    for place, state in coordinator.states.items():
        batches = state.batches
        found[place] = {
            "state_epoch": state.state_epoch,
            "snapshot_epoch": state.snapshot_epoch,
            "leader_epoch": state.leader_epoch,
            "start_offset": None if state.start_offset == -1 else state.start_offset,
            "delivery_complete_count": (
                None if state.delivery_complete_count == -1 else state.delivery_complete_count
            ),
            "available_count": _offsets(batches, 0),
            "acknowledged_count": _offsets(batches, 2),
            "archiving_count": _offsets(batches, 3),
            "archived_count": _offsets(batches, 4),
            "max_delivery_count": max((each.delivery_count for each in batches), default=None),
            "updates_since_snapshot": state.updates,
            "epoch_mismatches": state.mismatches,
            "create_timestamp": state.create_timestamp if state.has_snapshot else None,
            "write_timestamp": state.write_timestamp if state.has_snapshot else None,
            "record_offset": state.record_offset,
            "has_snapshot": state.has_snapshot,
            "batches": batches,
        }
    return found


def _offsets(batches: Iterable[CutBatch], state: int) -> int:
    return sum(
        each.last_offset - each.first_offset + 1 for each in batches if each.delivery_state == state
    )
