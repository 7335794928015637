"""The records of a share partition in order, with what each changed, and the events they tell."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import polars as pl
import pytest

from analytics.replay.history.dependency_events import share_events
from analytics.replay.share_partitions import (
    archives,
    share_partition_epochs,
    share_record_rows,
)
from tests.support.decoded_frames import frames_of

TOPIC_ID = "EYAGe3ybSjSvj5d44sPkEw"
NAMES = pl.DataFrame({"topic_id": [TOPIC_ID], "name": ["orders"]})
TABLES = ("share_snapshot", "share_update")
Row = dict[str, Any]


def at(second: int) -> datetime:
    return datetime(2026, 1, 1, tzinfo=UTC) + timedelta(seconds=second)


def record(offset: int, value: Row | None, group: str = "g") -> Row:
    key = {"group_id": group, "topic_id": TOPIC_ID, "partition": 2}
    place = {"topic": "__share_group_state", "partition": 7, "offset": offset, "leader_epoch": 5}
    told = {"timestamp": at(offset), "is_tombstone": value is None, "value": value}
    return {**place, **told, "key": key, "copy": "broker-1"}


def snapshot(number: int, epoch: int, start: int, *, cold: bool = False) -> Row:
    about = {"snapshot_epoch": number, "state_epoch": epoch, "leader_epoch": -1}
    times = {"create_timestamp": 100, "write_timestamp": 900 if cold else 100}
    return {**about, **times, "start_offset": start, "delivery_complete_count": 3}


def update(number: int, start: int, *ranges: tuple[int, int, int]) -> Row:
    names = ("first_offset", "last_offset", "delivery_state")
    batches = [dict(zip(names, each, strict=True)) for each in ranges]
    about = {"snapshot_epoch": number, "leader_epoch": -1, "start_offset": start}
    return {**about, "delivery_complete_count": -1, "state_batches": batches}


ACKNOWLEDGED, ARCHIVED = 2, 4
SNAPSHOTS = [
    record(0, snapshot(0, 1, 10)),
    record(3, snapshot(1, 1, 14)),
    record(5, snapshot(2, 2, 4)),
    record(6, snapshot(3, 2, 4, cold=True)),
    record(7, None),
    record(9, snapshot(0, 3, 20)),
    record(10, snapshot(4, 9, 8), "h"),
]
UPDATES = [
    record(1, update(0, -1, (10, 11, ACKNOWLEDGED), (12, 12, ARCHIVED), (15, 18, ARCHIVED))),
    record(2, update(0, 14)),
    # Of a snapshot that is not there.
    record(4, update(0, -1)),
    record(8, update(3, 14)),
]


@pytest.fixture(scope="module")
def decoded() -> dict[str, pl.DataFrame]:
    return frames_of({"share_snapshot": SNAPSHOTS, "share_update": UPDATES}, TABLES)


@pytest.fixture(scope="module")
def epochs(decoded: dict[str, pl.DataFrame]) -> pl.DataFrame:
    return share_partition_epochs(share_record_rows(decoded), NAMES)


def test_every_record_says_what_it_changed_since_the_last_that_told_it(
    epochs: pl.DataFrame,
) -> None:
    names = ("record_offset", "kind", "start_offset", "start_offset_advance", "epoch_mismatch")
    assert epochs.sort("record_offset").select(names).rows() == [
        (0, "snapshot", 10, None, None),
        (1, "update", None, None, False),
        (2, "update", 14, 4, False),
        (3, "snapshot", 14, None, None),
        (4, "update", None, None, True),
        (5, "snapshot", 4, -10, None),
        (6, "snapshot", 4, None, None),
        (7, "tombstone", None, None, None),
        # Behind a tombstone nothing is compared with what was before it.
        (8, "update", 14, None, True),
        (9, "snapshot", 20, 6, None),
        (10, "snapshot", 8, None, None),
    ]
    assert set(epochs.select("topic", "partition", "coordinator_epoch").rows()) == {
        ("orders", 2, 5)
    }
    told = {row["record_offset"]: row for row in epochs.iter_rows(named=True)}
    assert [at for at, row in sorted(told.items()) if row["cold"]] == [6]
    assert [told[1][name] for name in ("ranges", "state_epoch", "cold")] == [3, None, None]
    assert [told[0][name] for name in ("leader_epoch", "delivery_complete_count")] == [None, 3]
    assert told[1]["delivery_complete_count"] is None


def test_share_state_begins_is_altered_archives_and_is_deleted(
    decoded: dict[str, pl.DataFrame], epochs: pl.DataFrame
) -> None:
    events = share_events(epochs, archives(decoded), NAMES).sort("record_offset", "event")
    assert events.select("record_offset", "event", "detail").rows() == [
        (0, "share_initialized", "start offset 10; state epoch 1; snapshot 0"),
        (1, "share_archived", "5 records from 12 to 18"),
        (3, "share_snapshot", "start offset 14; state epoch 1; snapshot 1"),
        (5, "share_offset_altered", "start offset 4; state epoch 2; snapshot 2"),
        (6, "share_snapshot", "start offset 4; state epoch 2; snapshot 3; idle"),
        (7, "share_deleted", ""),
        (9, "share_initialized", "start offset 20; state epoch 3; snapshot 0"),
        # The first that is left of a log whose beginning was cleaned away.
        (10, "share_snapshot", "start offset 8; state epoch 9; snapshot 4"),
    ]
    assert set(events["subject"]) == {"orders-2"}
    assert set(events["log"]) == {"__share_group_state"}


def test_a_topic_that_nothing_names_leaves_its_events_with_a_partition_alone(
    decoded: dict[str, pl.DataFrame],
) -> None:
    nobody = NAMES.clear()
    epochs = share_partition_epochs(share_record_rows(decoded), nobody)
    events = share_events(epochs, archives(decoded), nobody)
    assert set(epochs["topic"]) == {None}
    assert set(events["subject"]) == {"2"}
