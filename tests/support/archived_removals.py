"""Archived rows with removals, and of which of them the dump tells what they took.

A commit in a transaction that was aborted leaves the same row as one that took effect.
"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

from analytics.replay.log.losses import Coverage

START = datetime(2026, 11, 22, 1, 9, 41, tzinfo=UTC)
REMOVED = START + timedelta(seconds=30)
TOPIC_ID = "bewsWPC-RJyx_Rn3wu_Ypg"
ARCHIVED = Coverage(undecided=frozenset({2}))
NAMELESS, NAMED, OF_THE_TOPIC = 3, 4, 5


def row(offset: int, at: datetime, group: str, topic: str, value: Any) -> dict[str, Any]:
    place = {"topic": "__consumer_offsets", "partition": 2, "offset": offset, "timestamp": at}
    key = {"group": group, "topic": topic, "partition": 0}
    return {**place, "is_tombstone": value is None, "key": key, "value": value}


def commit(offset: int, group: str, topic: str, topic_id: str | None) -> dict[str, Any]:
    at = round(START.timestamp() * 1000)
    value = {"offset": 7, "commit_timestamp": at, "expire_timestamp": -1, "topic_id": topic_id}
    return row(offset, START, group, topic, value)


def records() -> dict[str, list[dict[str, Any]]]:
    commits = [
        commit(0, "nameless", "in", None),
        commit(1, "named", "in", TOPIC_ID),
        commit(2, "of-the-topic", "gone", None),
    ]
    removals = [
        row(NAMELESS, REMOVED, "nameless", "in", None),
        row(NAMED, REMOVED + timedelta(seconds=2), "named", "in", None),
        row(OF_THE_TOPIC, REMOVED + timedelta(seconds=4), "of-the-topic", "gone", None),
    ]
    # A metadata log from its start: no other topic was deleted.
    first = {"topic": "__cluster_metadata", "offset": 0, "timestamp": START}
    first |= {"segment": "__cluster_metadata-0/00000000000000000000.log"}
    return {"offset_commit": [*commits, *removals], "feature_level_record": [first]}


TOPICS = [
    {"topic": "in", "topic_id": TOPIC_ID, "source": "metadata_log"},
    {"topic": "gone", "source": "metadata_log", "topic_id": "c2", "deleted_at": REMOVED},
]
