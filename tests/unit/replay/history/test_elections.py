"""Elections of leaders in a short metadata log: which of them came from outside the ISR."""

from __future__ import annotations

from typing import Any

from analytics.replay.history.data_partitions import elections
from analytics.replay.metadata.metadata_log import metadata_log
from analytics.replay.metadata.topics import named_in_records, topics
from tests.support.decoded_frames import frames_of
from tests.support.metadata_records import NEW, TABLES, change, partition, topic

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


def test_a_leader_from_outside_the_isr_is_told_also_while_the_last_one_recovers() -> None:
    rows: dict[str, list[dict[str, Any]]] = {}
    segment = "__cluster_metadata-0/00000000000000000000.log"
    for offset, ((name, value), _) in enumerate(STEPS):
        place = {"topic": "__cluster_metadata", "offset": offset, "segment": segment}
        rows.setdefault(name, []).append({**place, "value": value})
    log = metadata_log(frames_of(rows, TABLES))
    known = topics(log, (), named_in_records(log.decoded))
    found = elections(log, known).sort("leader_epoch")
    assert found.select("leader", "unclean").rows() == [told for _, told in STEPS if told]
    assert found["leader_epoch"].to_list() == list(range(len(found)))
