"""What a streams group keeps: in 4.1 nothing, until a heartbeat configured its topology."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from tests.support.told_removals import told_removals

START = datetime(2026, 11, 22, 1, 9, 41, tzinfo=UTC)
CLEANUP = START + timedelta(seconds=106)
STREAMS, SIMPLE = "words", "by-hand"
FIRST_FILE = "__cluster_metadata-0/00000000000000000000.log"
TOPICS = [{"topic": "in", "source": "partition_metadata"}]


def row(offset: int, at: datetime, key: dict[str, Any], value: Any) -> dict[str, Any]:
    place = {"topic": "__consumer_offsets", "partition": 2, "offset": offset, "timestamp": at}
    place |= {"batch_offset": offset, "leader_epoch": 0, "producer_id": -1}
    return {**place, "is_tombstone": value is None, "key": key, "value": value}


def records() -> dict[str, list[dict[str, Any]]]:
    group = {"group_id": STREAMS}
    part = {"subtopology_id": "0", "source_topics": ["in"], "repartition_source_topics": []}
    topology = {"epoch": 1, "subtopologies": [part]}
    committed = {"offset": 7, "commit_timestamp": round(START.timestamp() * 1000)}
    offsets = [{"group": name, "topic": "in", "partition": 0} for name in (STREAMS, SIMPLE)]
    return {
        "streams_group_member_metadata": [row(0, START, group | {"member_id": "m"}, {})],
        "streams_group_metadata": [row(1, START, group, {"epoch": 1})],
        "streams_group_topology": [row(2, START, group, topology)],
        # A metadata log from its start: no topic was deleted.
        "feature_level_record": [
            {"topic": "__cluster_metadata", "offset": 0, "timestamp": START, "segment": FIRST_FILE}
        ],
        "offset_commit": [
            *(row(3 + at, START, key, committed) for at, key in enumerate(offsets)),
            *(row(5 + at, CLEANUP, key, None) for at, key in enumerate(offsets)),
        ],
    }


@pytest.mark.parametrize(
    ("release", "told"),
    [("4.1", ("unknown", "low")), ("4.2", ("offsets_deleted", "high"))],
)
def test_a_cleanup_may_take_the_offsets_of_a_streams_group_of_4_1_with_members(
    release: str, told: tuple[str, str]
) -> None:
    """A broker of 4.1.2 that had begun anew did: its group still had a member."""
    assert told_removals(records(), release, TOPICS)[5] == told


def test_what_another_group_lost_in_the_same_second_is_no_cause() -> None:
    """Without a retention a cleanup looks as a deletion does, whoever else lost offsets then."""
    alone = records()
    alone["offset_commit"] = [
        each for each in alone["offset_commit"] if each["key"]["group"] == SIMPLE
    ]
    for rows in (records(), alone):
        assert told_removals(rows, "3.9", TOPICS)[6] == ("unknown", "low")
