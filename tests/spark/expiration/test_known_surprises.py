"""Bugs of Kafka that are recognised from what was removed when."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from analytics.evaluate.expiration.offset_log import offset_log
from analytics.evaluate.expiration.offset_removals import offset_removals
from analytics.evaluate.expiration.retention import OPTION, Retention, Setting
from analytics.replay.group_records import KINDS
from analytics.replay.metadata_log import FIRST_TABLES
from analytics.replay.rules import replay_rules
from schemas import table
from schemas.expiration_rules import audit_rules, expiration_eras
from tests.support.decoded_frames import frames_of
from tests.support.reference_expiration import Coordinator

if TYPE_CHECKING:
    from pyspark.sql import Row, SparkSession

pytestmark = pytest.mark.long

START = 1_700_000_000_000
MINUTE = 60_000
DAY = 1440 * MINUTE
TABLES = (*KINDS, *FIRST_TABLES, "offset_commit")
KEY = ("g", "orders", 0)


def judged(spark: SparkSession, coordinator: Coordinator, release: str) -> Row:
    """Return the one removal in the coordinator's log."""
    era = expiration_eras()[coordinator.era]
    log = offset_log(frames_of(spark, coordinator.rows, TABLES), replay_rules(release), era)
    topics = spark.createDataFrame([], table("topics").ddl(not_null=False))
    settings = Retention(Setting(DAY, OPTION, 10 * MINUTE))
    (row,) = offset_removals(log, topics, settings, START + DAY, audit=audit_rules()).collect()
    return row


def test_an_expire_time_of_minus_one_taken_as_a_time(spark: SparkSession) -> None:
    coordinator = Coordinator(0, "2.1-2.3", DAY, START)
    value = {"offset": 5, "commit_timestamp": START, "expire_timestamp": -1, "metadata": ""}
    coordinator.offset_record(KEY, value, 1, -1)
    coordinator.now += 2 * MINUTE
    coordinator.offset_record(KEY, None, None, -1)
    row = judged(spark, coordinator, "2.1")
    assert (row.cause, row.confidence, row.verdict) == ("expiration", "medium", "early")
    assert row.reason.startswith("KAFKA-8069")
    assert round(row.expected_at.timestamp() * 1000) == START + DAY


@pytest.mark.long
def test_an_active_group_that_rarely_commits_before_2_1(spark: SparkSession) -> None:
    coordinator = Coordinator(0, "pre-2.1", 5 * MINUTE, START)
    coordinator.join("g", "consumer", "m", ["orders"])
    coordinator.commit(KEY)
    coordinator.now += 6 * MINUTE
    assert coordinator.sweep() == {KEY}
    row = judged(spark, coordinator, "2.0")
    assert (row.cause, row.confidence, row.verdict) == ("expiration", "high", "on_time")
    assert row.rule == "per_offset_expiry"
    assert row.reason.startswith("KAFKA-4682")


def test_a_commit_that_is_due_when_it_is_made(spark: SparkSession) -> None:
    coordinator = Coordinator(0, "current", DAY, START)
    coordinator.join("g", "consumer", "m", ["orders"])
    coordinator.commit(("g", "orders", 1), keep_ms=9 * DAY)
    coordinator.leave("g", "m")
    coordinator.now += 3 * DAY
    coordinator.commit(KEY)
    coordinator.now += 10 * MINUTE
    assert coordinator.sweep() == {KEY}
    row = judged(spark, coordinator, "4.3")
    assert (row.cause, row.verdict, row.rule) == ("expiration", "on_time", "empty_group")
    assert row.reason.startswith("due already when it was committed")
    assert round(row.expected_at.timestamp() * 1000) == START + DAY


@pytest.mark.long
def test_the_same_group_since_2_1_can_only_have_been_deleted(spark: SparkSession) -> None:
    coordinator = Coordinator(0, "current", DAY, START)
    coordinator.join("g", "consumer", "m", ["orders"])
    coordinator.commit(KEY)
    coordinator.now += 2 * DAY
    coordinator.offset_record(KEY, None, None, -1)
    row = judged(spark, coordinator, "4.3")
    assert (row.cause, row.verdict, row.rule) == ("offsets_deleted", "not_applicable", None)
