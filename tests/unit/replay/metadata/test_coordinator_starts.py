"""When coordinators began, in a short metadata log: elections, and starts that kept the epoch."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

from analytics.replay.history.partition_history import START_TABLES, coordinator_starts
from analytics.replay.metadata_log import AROUND, metadata_log
from tests.support.expiration_logs import Row, frame_of, state_of
from tests.support.metadata_records import NEW, OLD, change, partition, topic

EPOCH = datetime(2024, 1, 1, tzinfo=UTC)
FIRST, SECOND, THIRD = "gtb2stGYRk-vWZ2zAozmoA", "EYAGe3ybSjSvj5d44sPkEw", "6bQYs6Z9T1ayNK9_zQO6Gw"


def broker(node: int, incarnation: str) -> tuple[str, dict[str, Any]]:
    return "register_broker_record", {"broker_id": node, "incarnation_id": incarnation}


STEPS: list[tuple[tuple[str, dict[str, Any]], tuple[int, int, bool] | None]] = [
    (broker(1, FIRST), None),
    (broker(2, FIRST), None),
    (topic("__consumer_offsets", NEW), None),
    (partition(NEW, 0, 1), (0, 1, False)),
    # The same incarnation is an amendment of the registration, another one a start.
    (broker(1, FIRST), None),
    (broker(1, SECOND), (0, 1, True)),
    (broker(2, SECOND), None),
    # Told by its election: it had registered before.
    (change(NEW, leader=-1), None),
    (broker(1, THIRD), None),
    (change(NEW, leader=1), (2, 1, False)),
    (change(NEW, leader=2), (3, 2, False)),
    (broker(1, FIRST), None),
    (broker(2, THIRD), (3, 2, True)),
    # Other topics have no coordinators of groups.
    (topic("orders", OLD), None),
    (partition(OLD, 0, 1), None),
]


def at(minute: int) -> datetime:
    return EPOCH + timedelta(minutes=minute)


def test_a_broker_that_starts_again_while_it_leads_begins_anew() -> None:
    rows: dict[str, list[dict[str, Any]]] = {}
    segment = "__cluster_metadata-0/00000000000000000000.log"
    for offset, ((name, value), _) in enumerate(STEPS):
        place = {"topic": "__cluster_metadata", "offset": offset, "segment": segment}
        rows.setdefault(name, []).append({**place, "timestamp": at(offset), "value": value})
    names = {*START_TABLES, *AROUND}
    decoded = {name: frame_of(name, rows.get(name, ())) for name in names}
    topics = [("__consumer_offsets", NEW), ("orders", OLD)]
    known = state_of("topics", [{"topic": name, "topic_id": each} for name, each in topics])
    starts = coordinator_starts(metadata_log(decoded), known).sort("started_at")
    found = [Row(each) for each in starts.iter_rows(named=True)]
    assert [(row.started_at, (row.leader_epoch, row.leader, row.is_restart)) for row in found] == [
        (at(minute), told) for minute, (_, told) in enumerate(STEPS) if told
    ]
    of_brokers = {row.leader: row.broker_starts for row in found}
    assert of_brokers == {1: [at(0), at(5), at(8), at(11)], 2: [at(1), at(6), at(12)]}
    # Of the first leader, and of a start within an epoch, nobody says until when one led before.
    assert [row.idle_since for row in found] == [None, None, at(7), at(10), None]
