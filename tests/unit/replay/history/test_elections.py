"""Elections of leaders in a short metadata log: which of them came from outside the ISR."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

import polars as pl
import pytest

from analytics.replay.history.partition_history import elections, unclean_takeovers
from analytics.replay.metadata_log import metadata_log
from analytics.replay.topics import named_in_records, topics
from tests.support.decoded_frames import frames_of
from tests.support.metadata_records import NEW, TABLES, change, partition, topic

if TYPE_CHECKING:
    from collections.abc import Iterable

    from analytics.replay.metadata_log import MetadataLog

START = datetime(2026, 11, 21, 9, tzinfo=UTC)
CLEAN, UNCLEAN = False, True
STEPS: list[tuple[tuple[str, dict[str, Any]], tuple[int | None, bool] | None]] = [
    (topic("t", NEW), None),
    (partition(NEW, 0, 1), (1, CLEAN)),
    # Taken from the ISR of 1 and 2, then from outside it.
    (change(NEW, leader=2, isr=[2]), (2, CLEAN)),
    (change(NEW, leader=3, isr=[3], leader_recovery_state=1), (3, UNCLEAN)),
    # While it recovers another one says nothing of recovery.
    (change(NEW, leader=-1), (None, CLEAN)),
    (change(NEW, leader=1, isr=[1]), (1, UNCLEAN)),
    # The same from those that are eligible, and at the end of a reassignment.
    (change(NEW, isr=[], eligible_leader_replicas=[2]), None),
    (change(NEW, leader=2, isr=[2], eligible_leader_replicas=[]), (2, CLEAN)),
    (change(NEW, leader=3, isr=[3], replicas=[3]), (3, CLEAN)),
    # Recovered: what is in sync leads.
    (change(NEW, leader_recovery_state=0), None),
    (change(NEW, isr=[3, 1]), None),
    (change(NEW, leader=1), (1, CLEAN)),
]


def log_of(steps: Iterable[tuple[str, dict[str, Any]]]) -> tuple[MetadataLog, pl.DataFrame]:
    """Return the metadata log, a record a second, and its topics."""
    rows: dict[str, list[dict[str, Any]]] = {}
    segment = "__cluster_metadata-0/00000000000000000000.log"
    for offset, (name, value) in enumerate(steps):
        place = {"topic": "__cluster_metadata", "offset": offset, "segment": segment}
        at = START + timedelta(seconds=offset)
        rows.setdefault(name, []).append({**place, "timestamp": at, "value": value})
    log = metadata_log(frames_of(rows, TABLES))
    return log, topics(log, (), named_in_records(log.decoded))


def test_a_leader_from_outside_the_isr_is_told_also_while_the_last_one_recovers() -> None:
    log, known = log_of(step for step, _ in STEPS)
    found = elections(log, known).sort("leader_epoch")
    assert found.select("leader", "unclean").rows() == [told for _, told in STEPS if told]
    assert found["leader_epoch"].to_list() == list(range(len(found)))


def registration(broker: int) -> tuple[str, dict[str, Any]]:
    return "register_broker_record", {"broker_id": broker}


ALONE = change(NEW, leader=1, isr=[1])
TAKEN_OVER = change(NEW, leader=2, isr=[2], leader_recovery_state=1)
BORN = [topic("t", NEW), partition(NEW, 0, 1)]
"""Brokers 1 and 2 are in sync."""
LEFT: dict[str, tuple[list[tuple[str, dict[str, Any]]], int | None]] = {
    "it was in sync until the other was alone": ([ALONE, TAKEN_OVER], 2),
    "it came back into sync meanwhile": (
        [ALONE, change(NEW, isr=[1, 2]), change(NEW, isr=[1]), TAKEN_OVER],
        4,
    ),
    "nobody led between": ([ALONE, change(NEW, leader=-1, isr=[]), TAKEN_OVER], 2),
    "it was eligible, and ceased to be": (
        [
            change(NEW, leader=1, isr=[1], eligible_leader_replicas=[2]),
            change(NEW, eligible_leader_replicas=[]),
            TAKEN_OVER,
        ],
        None,
    ),
    "it never was in sync": ([change(NEW, leader=3, isr=[3], leader_recovery_state=1)], None),
}


@pytest.mark.parametrize("name", LEFT)
def test_until_when_a_broker_was_in_sync_that_was_elected_from_outside_the_isr(name: str) -> None:
    steps, second = LEFT[name]
    found = unclean_takeovers(*log_of([*BORN, *steps]))
    at = START + timedelta(seconds=len(BORN) + len(steps) - 1)
    until = None if second is None else START + timedelta(seconds=second)
    assert found.rows() == [("t", 0, until, at)]


def test_a_broker_that_left_the_isr_as_it_registered_anew_may_have_lost_what_it_had() -> None:
    """It had been shut down uncleanly: the controller takes it out in the same batch."""
    log, known = log_of([*BORN, registration(2), ALONE, TAKEN_OVER])
    at = log.decoded["partition_change_record"]["timestamp"].min()
    same = log.decoded["register_broker_record"].with_columns(timestamp=pl.lit(at))
    again = metadata_log({**log.decoded, "register_broker_record": same})
    assert unclean_takeovers(again, known)["in_sync_until"].to_list() == [None]
    assert unclean_takeovers(log, known)["in_sync_until"].to_list() == [at]
