"""Whether a topic was gone when its offsets went, of which the metadata log may not tell."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING

import pytest

from analytics.replay.history.removal_causes import with_topic_absence
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
    spark: SparkSession, segment: str | None, directories: list[str] | None = None
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
    rows = with_topic_absence(removed, topics if segment else topics.limit(0), decoded, present)
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


@pytest.mark.parametrize(
    ("directories", "lives", "gone"), [(None, None, None), (["lives"], False, True)]
)
def test_without_a_log_directories_are_all_there_is(
    spark: SparkSession, directories: list[str] | None, lives: bool | None, gone: bool | None
) -> None:
    found = absences(spark, None, directories)
    assert found["before, another life of the name"] is lives
    assert found["before, a name nobody has"] is gone
    assert found["after"] is gone
