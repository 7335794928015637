"""Whether a topic was gone when its offsets went, of which the metadata log may not tell."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

import pytest

from analytics.replay.graph import needed_for, resolve
from analytics.replay.groups.group_records import KINDS
from analytics.replay.history.tables import HISTORY
from analytics.replay.history.topic_absence import with_topic_absence
from analytics.replay.log.coverage import Coverage
from analytics.replay.log.rules import replay_rules
from schemas import table
from tests.support.decoded_frames import frames_of
from tests.support.metadata_records import TABLES

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

BEFORE, START, AFTER = (datetime(2026, 11, 21, hour, tzinfo=UTC) for hour in (9, 10, 11))
OLD, NEW, ZERO = "gtb2stGYRk-vWZ2zAozmoA", "EYAGe3ybSjSvj5d44sPkEw", "AAAAAAAAAAAAAAAAAAAAAA"
SNAPSHOT = "__cluster_metadata-0/00000000000000000700-0000000002.checkpoint"
FIRST_FILE = "__cluster_metadata-0/00000000000000000000.log"

REMOVED = [
    ("before, another life of the name", "lives", BEFORE, OLD),
    ("before, the life that is there", "lives", BEFORE, NEW),
    ("before, of a life not named", "lives", BEFORE, ZERO),
    ("before, a name nobody has", "gone", BEFORE, None),
    ("before, a name that came later", "newcomer", BEFORE, None),
    ("after", "gone", AFTER, None),
]


def absences(
    spark: SparkSession,
    segment: str | None,
    directories: list[str] | None = None,
    *,
    beside: bool = False,
) -> dict[str, bool | None]:
    """Return what is said of each case where the metadata log begins in a file, or is not there."""
    first = [{"topic": "__cluster_metadata", "offset": 0, "timestamp": START, "segment": segment}]
    decoded = frames_of(spark, {"feature_level_record": first if segment else []}, TABLES)
    topics = spark.createDataFrame(
        [("lives", NEW, None, "metadata_log"), ("newcomer", OLD, AFTER, "metadata_log")],
        "topic string, topic_id string, created_at timestamp, source string",
    )
    removed = spark.createDataFrame(
        [(case, topic, at, (topic_id,)) for case, topic, at, topic_id in REMOVED],
        "case string, topic string, at timestamp, removed struct<topic_id: string>",
    )
    present = None
    if directories is not None:
        present = spark.createDataFrame([(each,) for each in directories], "topic string")
    if beside:
        topics = spark.createDataFrame(
            [("lives", NEW, None, "partition_metadata")],
            "topic string, topic_id string, created_at timestamp, source string",
        )
    elif not segment:
        topics = topics.limit(0)
    rows = with_topic_absence(removed, topics, decoded, present)
    return {row.case: row.topic_absent for row in rows.collect()}


def test_of_the_time_before_its_first_snapshot_the_log_tells_what_outlived_it(
    spark: SparkSession,
) -> None:
    assert absences(spark, SNAPSHOT) == {
        "before, another life of the name": True,
        "before, the life that is there": False,
        "before, of a life not named": None,
        "before, a name nobody has": True,
        "before, a name that came later": True,
        "after": False,
    }


def test_a_log_from_its_start_tells_of_every_deletion(spark: SparkSession) -> None:
    assert set(absences(spark, FIRST_FILE).values()) == {False}


@pytest.mark.parametrize(("directories", "gone"), [(None, None), (["lives"], True)])
def test_without_a_log_a_directory_may_be_of_a_topic_that_was_created_again(
    spark: SparkSession, directories: list[str] | None, gone: bool | None
) -> None:
    found = absences(spark, None, directories)
    assert found["before, another life of the name"] is None
    assert found["before, a name nobody has"] is gone
    assert found["after"] is gone


def test_the_id_in_a_directory_tells_which_topic_it_is_of(spark: SparkSession) -> None:
    found = absences(spark, None, ["lives"], beside=True)
    assert found["before, another life of the name"] is True
    assert found["before, the life that is there"] is False
    assert found["before, of a life not named"] is None


@pytest.mark.parametrize(
    ("directories", "cause", "confidence"),
    [
        (frozenset({"lives"}), "unknown", "low"),
        (frozenset({"lives", "gone"}), "unknown", "low"),
        (None, "unknown", "low"),
    ],
)
def test_history_looks_at_the_directories_too(
    spark: SparkSession, directories: frozenset[str] | None, cause: str, confidence: str
) -> None:
    """Where ZooKeeper had the metadata: a group of 3.9.2 ended with its last topic."""
    place = {"topic": "__consumer_offsets", "partition": 3, "producer_id": -1, "leader_epoch": 0}
    soon = START + timedelta(seconds=1)
    committed = {"offset": 15, "commit_timestamp": round(START.timestamp() * 1000)}
    offset = {"group": "watchers", "topic": "gone", "partition": 0}
    empty = {"protocol_type": "consumer", "generation": 2, "members": []}

    def row(number: int, at: datetime, key: dict[str, Any], value: Any) -> dict[str, Any]:
        told = {"offset": number, "batch_offset": number, "timestamp": at, "key": key}
        return place | told | {"value": value, "is_tombstone": value is None}

    group = {"group": "watchers"}
    rows = {
        "offset_commit": [row(0, START, offset, committed), row(2, soon, offset, None)],
        "group_metadata": [row(1, START, group, empty), row(3, soon, group, None)],
    }
    given = {
        "cut": frames_of(spark, rows, (*KINDS, *TABLES)),
        "topics": spark.createDataFrame([], table("topics").ddl(not_null=False)),
        "rules": replay_rules("3.9"),
        "coverage": Coverage(data_topics=directories),
    }
    (told,) = resolve(needed_for(HISTORY, ["removals"]), given)["removals"].collect()
    assert (told.cause, told.confidence) == (cause, confidence)
