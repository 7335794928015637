"""What real brokers removed: every tombstone's cause, a verdict, and what was due right before."""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import dataclass
from datetime import timedelta
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import polars as pl
import pyarrow as pa
import pyarrow.compute as pc
import pytest

from analytics.questions.expiration.retention_settings import ASSUMED, OPTION, Retention, Setting
from analytics.replay.history.partition_history import START_TABLES as OF_STARTS
from analytics.replay.history.partition_history import coordinator_starts
from analytics.replay.log.losses import WHOLE, Coverage
from analytics.replay.metadata_log import AROUND, metadata_log
from tests.support.decoded_frames import tables_of_dump
from tests.support.expiration_logs import (
    TABLES,
    Around,
    Row,
    log_of,
    log_of_frames,
    removals_in,
    state_of,
)
from tests.support.removed_by_brokers import predictions, read_removals, sweeps_of

if TYPE_CHECKING:
    from collections.abc import Mapping

DATA = Path(__file__).parents[3] / "data"
OFFSETS = "__consumer_offsets"
METADATA = "__cluster_metadata"
OF_METADATA = {*AROUND, *OF_STARTS}
AFTER_ALL_MS = 1_800_000_000_000
MINUTE = 60_000


@dataclass(frozen=True)
class Dump:
    """A log directory, the release that wrote it last, and how often that cleaned up."""

    folder: str
    release: str
    era: str
    check_interval_ms: int
    topics_there: tuple[str, ...] | None = None


DUMPS = {
    "kafka-4.3.1-expiry": Dump("expiry/kafka-4.3.1-expiry", "4.3", "current", 10_000),
    "kafka-3.9.2-classic": Dump("dumps/kafka-3.9.2-classic", "3.9", "3.2-3.9", 5_000),
    "kafka-upgrade-2.0.1-to-3.9.2": Dump(
        "dumps/kafka-upgrade-2.0.1-to-3.9.2",
        "3.9",
        "3.2-3.9",
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

MOVED = "the coordinator was restarted or moved, and its cleanups began anew: leader epoch since "
RESTARTED = "the coordinator was restarted, and its cleanups began anew: the broker kept its leader"
UNSEEN = (
    "the log shows no reason: a restart that kept the leader epoch, a cleanup that failed or a "
)
LEFT = "the cleanups before left it too, and the first one after a restart or move took it: "
REBALANCED = "late, or kept by a rebalance (PreparingRebalance), which no record shows"
LATE = {
    "kafka-4.3.1-expiry": {MOVED: 12, REBALANCED: 4},
    "kafka-3.9.2-classic": {LEFT: 1, RESTARTED: 1, REBALANCED: 4},
    # A start with a retention of one minute, where it had been a week: ZooKeeper kept the epoch.
    "kafka-upgrade-2.0.1-to-3.9.2": {UNSEEN: 44},
    "kafka-2.0.1-v1": {},
}
EVERY_RUN = {"kafka-4.3.1-expiry"}


def dumps(*names: str) -> list[object]:
    marks = {name: () if name in EVERY_RUN else (pytest.mark.long,) for name in names}
    return [pytest.param(name, marks=marks[name]) for name in names]


def judged(dump: Dump) -> list[Row]:
    """What is said of the removals in a dump: a ZooKeeper cluster has no metadata log."""
    broker = DATA / dump.folder / "broker-1"
    told = tables_of_dump(broker, METADATA, OF_METADATA)
    metadata = {name: pl.DataFrame(pl.from_arrow(rows)) for name, rows in told.items()}
    log, topics = metadata_log(metadata), topics_told(metadata)
    around = Around(topics, log.begins, coordinator_starts(log, topics), dump.topics_there)
    before = "pre-2.1" if dump.era == "3.2-3.9" else None
    offsets = log_of(tables_of_dump(broker, OFFSETS, TABLES), dump.release, dump.era, before)
    return removals_in(offsets, retention(dump), AFTER_ALL_MS, around)


def topics_told(metadata: Mapping[str, pl.DataFrame]) -> pl.DataFrame:
    """Return the table `topics` of a whole metadata log without transactions."""
    removed = {
        row["value"]["topic_id"]: row["timestamp"]
        for row in metadata["remove_topic_record"].iter_rows(named=True)
    }
    return state_of(
        "topics",
        [
            {
                "topic": row["value"]["name"],
                "topic_id": row["value"]["topic_id"],
                "created_at": row["timestamp"],
                "deleted_at": removed.get(row["value"]["topic_id"]),
                "source": "metadata_log",
            }
            for row in metadata["topic_record"].iter_rows(named=True)
        ],
    )


def retention(dump: Dump) -> Retention:
    return Retention(Setting(MINUTE, OPTION, dump.check_interval_ms))


@pytest.mark.parametrize("name", dumps(*DUMPS))
def test_causes_are_the_true_ones_and_lateness_is_what_the_broker_logged(
    name: str,
) -> None:
    dump = DUMPS[name]
    told = read_removals(DATA / "expiry" / f"removals-{name}.json")
    rows = {(row.coordinator_partition, row.record_offset): row for row in judged(dump)}
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
    late = [row for row in rows.values() if row.verdict == "late"]
    reasons = Counter(why for row in late for why in LATE[name] if row.reason.startswith(why))
    assert (reasons, len(late)) == (LATE[name], sum(LATE[name].values()))
    for row in rows.values():
        if row.last_commit_timestamp is not None and row.removed_at is not None:
            took_effect = row.last_effective_timestamp
            assert row.last_commit_timestamp <= took_effect <= row.removed_at, row
    if name == "kafka-4.3.1-expiry":
        waited = [
            row.last_effective_timestamp - row.last_commit_timestamp
            for row in rows.values()
            if row.last_commit_timestamp is not None
        ]
        # Commits of transactions count from the marker on, which came two minutes later.
        assert sum(each > timedelta(minutes=1) for each in waited) == 4
    for row in late:
        assert_logged(name, row)


@pytest.mark.parametrize("topics", ["nothing tells of topics", "directories tell of topics"])
def test_whoever_is_asked_about_and_whatever_is_known_no_cause_is_another_one(topics: str) -> None:
    """Without settings and metadata log most are unknown; some groups alone fare alike."""
    name = "kafka-4.3.1-expiry"
    dump = DUMPS[name]
    told = read_removals(DATA / "expiry" / f"removals-{name}.json")
    decoded = tables_of_dump(DATA / dump.folder / "broker-1", OFFSETS, TABLES)
    there = {true["topic"] for true in told.values()} - {
        true["topic"] for true in told.values() if true["cause"] == "topic_deleted"
    }
    around = Around(present=None if topics.startswith("nothing") else sorted(there))
    groups = sorted({true["group"] for true in told.values()})[::3]
    assumed = Retention(Setting(7 * 1440 * MINUTE, ASSUMED, 10 * MINUTE))
    every, alone = (
        {
            (row.coordinator_partition, row.record_offset): (row.cause, row.confidence)
            for row in removals_in(
                log_of(rows, dump.release, dump.era), assumed, AFTER_ALL_MS, around
            )
        }
        for rows in (decoded, {**decoded, "offset_commit": commits_of(decoded, groups)})
    )
    assert len(alone) > len(every) / 5
    assert alone == {place: every[place] for place in alone}
    wrong = {
        place: (cause, told[place]["cause"])
        for place, (cause, _) in every.items()
        if cause not in {"unknown", told[place]["cause"]}
    }
    assert wrong == {}
    assert Counter(cause for cause, _ in every.values())["group_deleted"] == 4


def test_after_the_cleaner_no_removal_has_another_cause_or_verdict() -> None:
    """Only the last record of each key is left of the first half of every partition."""
    name = "kafka-4.3.1-expiry"
    dump = DUMPS[name]
    told = read_removals(DATA / "expiry" / f"removals-{name}.json")
    frames = {
        table: pl.DataFrame(pl.from_arrow(rows))
        for table, rows in tables_of_dump(DATA / dump.folder / "broker-1", OFFSETS, TABLES).items()
    }
    places = pl.concat(rows.select("partition", "offset") for rows in frames.values())
    halves = places.group_by("partition").agg((pl.col("offset").max() // 2).alias("half"))
    of_partition = dict(halves.rows())
    taken = Coverage(
        uncompacted_from={(OFFSETS, number): half for number, half in of_partition.items() if half}
    )

    def causes(rows: Mapping[str, pl.DataFrame], coverage: Coverage) -> dict[Any, Row]:
        log = log_of_frames(rows, dump.release, dump.era)
        around = Around(coverage=coverage)
        found = removals_in(log, retention(dump), AFTER_ALL_MS, around)
        return {(row.coordinator_partition, row.record_offset): row for row in found}

    cleaned = {
        table: rows if table == "control_markers" else last_of_keys(rows, halves)
        for table, rows in frames.items()
    }
    whole, left = causes(frames, WHOLE), causes(cleaned, taken)
    judged = {place: row for place, row in left.items() if row.verdict != "cannot_tell"}
    assert len(judged) > len(told) / 3
    for place, row in judged.items():
        assert row.cause == told[place]["cause"], row
        assert (row.verdict, row.expected_at) == (
            whole[place].verdict,
            whole[place].expected_at,
        ), row


def last_of_keys(rows: pl.DataFrame, halves: pl.DataFrame) -> pl.DataFrame:
    """Return what the log cleaner leaves of the first half of each partition, and the rest."""
    if rows.is_empty():
        return rows
    placed = rows.join(halves, on="partition").with_columns(
        pl.col("key").struct.json_encode().alias("text")
    )
    is_old = pl.col("offset") < pl.col("half")
    old = placed.filter(is_old).sort("offset").unique(["partition", "text"], keep="last")
    return pl.concat([old, placed.filter(~is_old)]).sort("partition", "offset")[rows.columns]


def commits_of(decoded: Mapping[str, pa.Table], groups: list[str]) -> pa.Table:
    """Return the commits and tombstones of some groups."""
    commits = decoded["offset_commit"]
    named = pc.struct_field(commits["key"], "group")
    return commits.filter(pc.is_in(named, pa.array(groups)))


@cache
def logged() -> dict[str, Any]:
    """What the coordinators themselves logged."""
    told: dict[str, Any] = json.loads((DATA / "expiry" / "coordinator-log.json").read_text("utf-8"))
    return told


def assert_logged(name: str, row: Row) -> None:
    """A coordinator that began anew, or a rebalance, is in the broker's own log at that time."""
    due, gone = (round(at.timestamp() * 1000) for at in (row.expected_at, row.removed_at))
    if row.reason != REBALANCED:
        # A coordinator that is down, or has not loaded its partition, cleans up nothing.
        (began,) = [each for each in logged()[name]["starts"] if 0 < gone - each["at"] < 30_000]
        # But for one that was at work, and had it no longer, or kept it longer.
        was_up = began["down_since"] > due + DUMPS[name].check_interval_ms
        assert was_up == row.reason.startswith((UNSEEN, LEFT)), row
    if row.reason == REBALANCED:
        assert any(
            each["group"] == row.group_id and each["from"] <= due < each["to"] <= gone
            for each in logged()[name]["rebalances"]
        ), row


@pytest.mark.parametrize("name", dumps("kafka-4.3.1-expiry", "kafka-3.9.2-classic"))
@pytest.mark.long
def test_what_went_and_nothing_else_was_due_right_before(name: str) -> None:
    dump = DUMPS[name]
    sweeps = sweeps_of(read_removals(DATA / "expiry" / f"removals-{name}.json").values())
    decoded = tables_of_dump(DATA / dump.folder / "broker-1", OFFSETS, TABLES)
    found = predictions(decoded, sweeps, dump.release, dump.era, retention(dump))
    for each in found:
        assert each.sweep.removed <= each.due | each.due_unless_rebalancing, each.sweep
        assert each.due - each.sweep.removed <= IN_MEMORY_ONLY.get(name, set()), each.sweep
        for key in each.due_unless_rebalancing - each.sweep.removed:
            assert key[0] == "stuck-rebalance", each.sweep


IN_MEMORY_ONLY = {"kafka-3.9.2-classic": {("by-hand", "tmp-audit", 1)}}
"""Gone from the broker's memory with its topic, back when its log is replayed (3.9)."""
