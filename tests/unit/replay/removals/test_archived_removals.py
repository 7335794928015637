"""Removals among archived rows: which commit one took is known where it names its topic's id.

A commit in a transaction that was aborted leaves the same row as one that took effect.
"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from analytics.replay.log.coverage import Coverage
from tests.support.told_removals import told_removals

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


@pytest.fixture(scope="module")
def causes() -> dict[int, tuple[str, str]]:
    return told_removals(records(), "4.3", TOPICS, ARCHIVED)


def test_what_took_a_commit_that_may_never_have_been_is_not_known(
    causes: dict[int, tuple[str, str]],
) -> None:
    assert causes[NAMELESS] == ("unknown", "low")
    # Of a log the same rows tell: a minute was not over, so the cleanup left it alone.
    assert told_removals(records(), "4.3", TOPICS)[NAMELESS] == ("offsets_deleted", "high")


def test_what_names_its_topics_id_was_in_no_transaction(
    causes: dict[int, tuple[str, str]],
) -> None:
    assert causes[NAMED] == ("offsets_deleted", "high")


def test_what_went_with_its_topic_went_with_it_whatever_was_committed(
    causes: dict[int, tuple[str, str]],
) -> None:
    assert causes[OF_THE_TOPIC] == ("topic_deleted", "medium")
