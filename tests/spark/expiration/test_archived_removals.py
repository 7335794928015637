"""Removals among archived rows: which commit one took is known where it names its topic's id.

A commit in a transaction that was aborted leaves the same row as one that took effect.
"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

import pytest

from analytics.replay.groups.group_records import KINDS
from analytics.replay.history.removal_causes import removal_causes
from analytics.replay.log.coverage import WHOLE, Coverage
from analytics.replay.log.rules import replay_rules
from analytics.replay.metadata.metadata_log import FIRST_TABLES
from schemas import table
from tests.support.decoded_frames import frames_of

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

START = datetime(2026, 11, 22, 1, 9, 41, tzinfo=UTC)
REMOVED = START + timedelta(seconds=30)
TOPIC_ID = "bewsWPC-RJyx_Rn3wu_Ypg"
TABLES = (*KINDS, *FIRST_TABLES, "offset_commit", "control_markers")
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


def decoded(spark: SparkSession) -> dict[str, DataFrame]:
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
    rows = {"offset_commit": [*commits, *removals], "feature_level_record": [first]}
    return frames_of(spark, rows, TABLES)


@pytest.fixture(scope="module")
def topics(spark: SparkSession) -> DataFrame:
    there = {"topic": "in", "topic_id": TOPIC_ID, "source": "metadata_log"}
    gone = {"topic": "gone", "source": "metadata_log", "topic_id": "c2", "deleted_at": REMOVED}
    return spark.createDataFrame([there, gone], table("topics").ddl(not_null=False))


@pytest.fixture(scope="module")
def causes(spark: SparkSession, topics: DataFrame) -> dict[int, tuple[str, str]]:
    told = removal_causes(decoded(spark), topics, replay_rules("4.3"), coverage=ARCHIVED)
    return {each.record_offset: (each.cause, each.confidence) for each in told.collect()}


def test_what_took_a_commit_that_may_never_have_been_is_not_known(
    spark: SparkSession, topics: DataFrame, causes: dict[int, tuple[str, str]]
) -> None:
    assert causes[NAMELESS] == ("unknown", "low")
    logs = removal_causes(decoded(spark), topics, replay_rules("4.3"), coverage=WHOLE).collect()
    told = {each.record_offset: (each.cause, each.confidence) for each in logs}
    # Of a log the same rows tell: a minute was not over, so the cleanup left it alone.
    assert told[NAMELESS] == ("offsets_deleted", "high")


def test_what_names_its_topics_id_was_in_no_transaction(
    causes: dict[int, tuple[str, str]],
) -> None:
    assert causes[NAMED] == ("offsets_deleted", "high")


def test_what_went_with_its_topic_went_with_it_whatever_was_committed(
    causes: dict[int, tuple[str, str]],
) -> None:
    assert causes[OF_THE_TOPIC] == ("topic_deleted", "medium")
