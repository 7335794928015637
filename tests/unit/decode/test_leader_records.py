"""What is read of the metadata log before all else is what the decoder reads of it."""

from __future__ import annotations

from pathlib import Path

import pytest

from analytics.decode.elections import known_leaders, leader_records
from analytics.dump.copies.plan import plan
from tests.support.decoded_frames import frames_of_dump

TABLES = ("topic_record", "partition_record", "partition_change_record")
FIELDS = ("leader", "isr", "replicas", "leader_epoch", "eligible_leader_replicas", "partition_id")


@pytest.mark.parametrize("table", TABLES)
def test_the_records_are_those_of_the_decoder(failover_dump: Path, table: str) -> None:
    controller = failover_dump / "controller-100"
    (frame,) = frames_of_dump(controller, "__cluster_metadata", [table]).values()
    found = leader_records(plan([str(controller)]).slices)[table]
    assert [each["offset"] for each in found] == frame["offset"].to_list()
    assert [each["timestamp"] for each in found] == frame["timestamp"].to_list()
    for each, decoded in zip(found, frame["value"].to_list(), strict=True):
        for field in (*FIELDS, "leader_recovery_state", "name"):
            unchanged = {None, -2} if field == "leader" else {None}
            if each["value"].get(field) is not None:
                assert each["value"][field] == decoded[field], (each["offset"], field)
            else:
                assert decoded.get(field) is None or decoded[field] in unchanged


def test_records_of_several_copies_count_once(failover_dump: Path) -> None:
    known = known_leaders(plan([str(failover_dump)]).copies)
    alone = known_leaders(plan([str(failover_dump / "controller-100")]).copies)
    assert known.registered == alone.registered
    led = known.registered["__consumer_offsets", 0].led
    assert [(each.epoch, each.leader) for each in led] == [(0, 3), (1, 1), (2, -1), (3, 2)]
