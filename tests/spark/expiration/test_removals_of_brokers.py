"""What real brokers removed: every tombstone's cause, a verdict, and what was due right before."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from analytics.evaluate.expiration.offset_log import OffsetLog, offset_log
from analytics.evaluate.expiration.offset_removals import offset_removals
from analytics.evaluate.expiration.retention import OPTION, Retention, Setting
from analytics.replay.group_records import KINDS
from analytics.replay.metadata_log import FIRST_TABLES
from analytics.replay.rules import replay_rules
from schemas import table
from schemas.expiration_rules import audit_rules, expiration_eras
from tests.support.decoded_frames import frames_of, frames_of_dump
from tests.support.removed_by_brokers import predictions, read_removals, sweeps_of

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, Row, SparkSession

pytestmark = pytest.mark.long

DATA = Path(__file__).parents[2] / "data"
OFFSETS = "__consumer_offsets"
TABLES = (*KINDS, "offset_commit", "control_markers")
AFTER_ALL_MS = 1_800_000_000_000
MINUTE = 60_000


@dataclass(frozen=True)
class Dump:
    """A log directory, the release that wrote it last, and how often that cleaned up.

    ``deleted`` is the topic whose deletion the metadata log tells, with its id and the time.
    """

    folder: str
    release: str
    era: str
    check_interval_ms: int
    topics_there: tuple[str, ...] | None = None
    deleted: tuple[str, str, str] | None = None


DUMPS = {
    "kafka-4.3.1-expiry": Dump(
        "expiry/kafka-4.3.1-expiry",
        "4.3",
        "current",
        10_000,
        deleted=("temp-events", "ND9mVsrOTqCWqq2cIFVDug", "2026-11-21T08:57:55.077+00:00"),
    ),
    "kafka-3.9.2-classic": Dump(
        "dumps/kafka-3.9.2-classic",
        "3.9",
        "2.4-3.9",
        5_000,
        deleted=("tmp-audit", "CR5CrWzdSPKR1lSAstXFdw", "2026-11-21T09:17:35.956+00:00"),
    ),
    "kafka-upgrade-2.0.1-to-3.9.2": Dump(
        "dumps/kafka-upgrade-2.0.1-to-3.9.2",
        "3.9",
        "2.4-3.9",
        10_000,
        ("clicks", "ledger", "orders", "payments", "returns", "stock"),
    ),
    "kafka-2.0.1-v1": Dump(
        "dumps/kafka-2.0.1-v1",
        "2.0",
        "pre-2.1",
        10_000,
        ("clicks", "ledger", "orders", "payments", "stock", "words"),
    ),
}
NOT_IN_FORCE = {("kafka-upgrade-2.0.1-to-3.9.2", 6, 96)}
"""Where `removals.json` of that dump names a commit that was still pending in its transaction."""

TIMELESS = {("kafka-2.0.1-v1", "import-v0-lz4-2")}
"""Deleted six seconds before its offsets were due, in message format 0: the record before its
tombstones was written 15 s before the instant, the one after them 18 s after it. A cleanup in
between would have left the same bytes."""

REASONS = ("restart", "COMMIT marker", "PreparingRebalance")
EVERY_RUN = {"kafka-4.3.1-expiry"}


def dumps(*names: str) -> list[object]:
    marks = {name: () if name in EVERY_RUN else (pytest.mark.long,) for name in names}
    return [pytest.param(name, marks=marks[name]) for name in names]


def log_of(spark: SparkSession, dump: Dump) -> OffsetLog:
    decoded = frames_of_dump(spark, DATA / dump.folder / "broker-1", OFFSETS, TABLES)
    decoded |= frames_of(
        spark, {"feature_level_record": metadata_of(dump)}, set(FIRST_TABLES) - set(TABLES)
    )
    eras = expiration_eras()
    before = eras["pre-2.1"] if dump.era == "2.4-3.9" else None
    return offset_log(decoded, replay_rules(dump.release), eras[dump.era], before)


def metadata_of(dump: Dump) -> list[dict[str, object]]:
    """The first record of a metadata log that is there from its start; a ZooKeeper one has none."""
    segment = "__cluster_metadata-0/00000000000000000000.log"
    return [{"topic": "__cluster_metadata", "offset": 0, "segment": segment}] * bool(dump.deleted)


def topics_of(spark: SparkSession, dump: Dump) -> DataFrame:
    """What the metadata log tells of deleted topics; nothing of a ZooKeeper cluster."""
    rows = [
        (name, topic_id, 1, None, datetime.fromisoformat(at), "metadata_log")
        for name, topic_id, at in filter(None, [dump.deleted])
    ]
    return spark.createDataFrame(rows, table("topics").ddl(not_null=False))


def judged(spark: SparkSession, dump: Dump) -> list[Row]:
    there = dump.topics_there and spark.createDataFrame(
        [(name,) for name in dump.topics_there], "topic string"
    )
    return offset_removals(
        log_of(spark, dump),
        topics_of(spark, dump),
        retention(dump),
        AFTER_ALL_MS,
        audit=audit_rules(),
        present=there or None,
    ).collect()


def retention(dump: Dump) -> Retention:
    return Retention(Setting(MINUTE, OPTION, dump.check_interval_ms))


@pytest.mark.parametrize("name", dumps(*DUMPS))
def test_causes_are_the_true_ones_and_lateness_has_a_reason(spark: SparkSession, name: str) -> None:
    dump = DUMPS[name]
    told = read_removals(DATA / "expiry" / f"removals-{name}.json")
    rows = {(row.coordinator_partition, row.record_offset): row for row in judged(spark, dump)}
    assert rows.keys() == told.keys()
    for place, true in told.items():
        row = rows[place]
        if (name, true["group"]) in TIMELESS:
            assert (row.cause, row.confidence) == ("unknown", "low"), row
            assert "leave open whether it was due" in row.reason, row
        elif true["removed"] or true["removed_pending"]:
            assert row.cause == true["cause"], row
        else:
            assert row.cause in {"unknown", true["cause"]}, row
        if true["removed"] and (name, *place) not in NOT_IN_FORCE:
            assert row.last_offset == true["removed"]["committed_offset"]
        if row.cause == "expiration":
            assert row.verdict in {"on_time", "late", "cannot_tell"}, row
            # Without a time, in message format 0, what is known lies between other records.
            assert row.verdict != "cannot_tell" or row.removed_at is None, row
        else:
            unknown = row.cause == "unknown"
            assert row.verdict == ("cannot_tell" if unknown else "not_applicable"), row
        if row.verdict == "late":
            assert any(word in row.reason for word in REASONS), row


@pytest.mark.parametrize("name", dumps("kafka-4.3.1-expiry", "kafka-3.9.2-classic"))
@pytest.mark.long
def test_what_went_and_nothing_else_was_due_right_before(spark: SparkSession, name: str) -> None:
    dump = DUMPS[name]
    sweeps = sweeps_of(read_removals(DATA / "expiry" / f"removals-{name}.json").values())
    decoded = frames_of_dump(spark, DATA / dump.folder / "broker-1", OFFSETS, TABLES)
    found = predictions(
        spark,
        decoded,
        sweeps,
        replay_rules(dump.release),
        expiration_eras()[dump.era],
        retention(dump),
    )
    for each in found:
        assert each.sweep.removed <= each.due | each.due_unless_rebalancing, each.sweep
        assert each.due - each.sweep.removed <= IN_MEMORY_ONLY.get(name, set()), each.sweep
        for key in each.due_unless_rebalancing - each.sweep.removed:
            assert key[0] == "stuck-rebalance", each.sweep


IN_MEMORY_ONLY = {"kafka-3.9.2-classic": {("by-hand", "tmp-audit", 1)}}
"""Gone from the broker's memory with its topic, back when its log is replayed (3.9)."""
