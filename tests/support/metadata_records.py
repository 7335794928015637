"""Records of a short metadata log, and the tables that one is replayed from."""

from __future__ import annotations

from typing import Any

from schemas import all_record_types

TABLES = (
    *(
        kind.table
        for kind in all_record_types().values()
        if kind.topic == "__cluster_metadata" and kind.read == "decode"
    ),
    "control_markers",
    "offset_commit",
    "consumer_group_partition_metadata",
    "share_group_partition_metadata",
    "share_group_state_partition_metadata",
)
OLD, NEW = "gtb2stGYRk-vWZ2zAozmoA", "EYAGe3ybSjSvj5d44sPkEw"


def topic(name: str, topic_id: str) -> tuple[str, dict[str, Any]]:
    return "topic_record", {"name": name, "topic_id": topic_id}


def partition(topic_id: str, number: int, leader: int) -> tuple[str, dict[str, Any]]:
    value = {"topic_id": topic_id, "partition_id": number, "leader": leader, "leader_epoch": 0}
    return "partition_record", value | {"isr": [1, 2], "leader_recovery_state": 0}


def change(topic_id: str, **what: Any) -> tuple[str, dict[str, Any]]:
    value = {"topic_id": topic_id, "partition_id": 0, "leader": -2, "leader_recovery_state": -1}
    return "partition_change_record", value | what
