"""What befell what a group depends on: its coordinator, its topics and settings of both."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

import polars as pl

from analytics.replay.history.dependency_events import (
    DependencyRecords,
    config_events,
    config_records,
    coordinator_events,
    topic_changes,
    topic_events,
    topic_records,
)
from analytics.replay.metadata_log import MetadataLog, metadata_log
from tests.support.decoded_frames import frames_of
from tests.support.metadata_records import NEW, OLD, TABLES, partition, topic

OFFSETS, METADATA = "__consumer_offsets", "__cluster_metadata"
PLACE = {"copy": "broker-1", "segment": f"{OFFSETS}-0/0.log", "batch_position": 0}
SECRET = "sasl.jaas.config"


def at(second: int) -> datetime:
    return datetime(2026, 1, 1, tzinfo=UTC) + timedelta(seconds=second)


def setting(kind: int, resource: str, name: str, value: str | None) -> tuple[str, dict[str, Any]]:
    said = {"resource_type": kind, "resource_name": resource, "name": name, "value": value}
    return "config_record", said


def log_of(steps: list[tuple[str, dict[str, Any]] | None]) -> MetadataLog:
    """A metadata log; steps follow each other by a second, and None makes the next one wait."""
    rows: dict[str, list[dict[str, Any]]] = {}
    second = 0
    for offset, step in enumerate(steps):
        if step is None:
            second += 1
            continue
        place = {"topic": METADATA, "partition": 0, "offset": offset, "timestamp": at(second)}
        place |= {"segment": "__cluster_metadata-0/00000000000000000000.log", "leader_epoch": 4}
        rows.setdefault(step[0], []).append({**place, "value": step[1]})
    return metadata_log(frames_of(rows, TABLES))


def told(events: pl.DataFrame) -> list[tuple[object, ...]]:
    names = ("group_id", "event", "subject", "detail", "at", "record_offset")
    return events.sort("record_offset", "group_id").select(names).rows()


LOG = log_of(
    [
        topic("orders", OLD),
        partition(OLD, 0, 1),
        partition(OLD, 1, 1),
        None,
        partition(OLD, 2, 1),
        ("remove_topic_record", {"topic_id": OLD}),
        None,
        topic("orders", NEW),
        partition(NEW, 0, 1),
        topic("other", "6bQYs6Z9T1ayNK9_zQO6Gw"),
        setting(2, "orders", "retention.ms", "5"),
        setting(2, "orders", SECRET, "hunter2"),
        setting(2, "other", "retention.ms", "6"),
        setting(32, "g", "consumer.session.timeout.ms", "7"),
        setting(32, "g", "consumer.session.timeout.ms", None),
        setting(4, "1", "offsets.retention.minutes", "8"),
    ]
)


NAMED = pl.DataFrame({"topic_id": [OLD, NEW], "topic": ["orders", "orders"]})


def used(
    pairs: Mapping[str, Sequence[str | None]], doubt: str | None = None, group: str = ""
) -> pl.DataFrame:
    """Pairs of groups and topics; those of a group are in doubt."""
    rows = pl.DataFrame(pairs)
    is_doubtful = pl.col("group_id") == group
    return rows.with_columns(doubt=pl.when(is_doubtful).then(pl.lit(doubt, pl.String)))


def test_topics_come_go_and_grow_for_the_groups_that_use_them() -> None:
    named = NAMED
    uses = pl.DataFrame({"group_id": ["g", "h"], "topic": ["orders", "elsewhere"]})
    events = topic_events(uses, topic_changes(topic_records(LOG), named))
    # Partitions that are created with the topic make it no larger.
    assert told(events) == [
        ("g", "topic_created", "orders", f"id {OLD}", at(0), 0),
        ("g", "topic_grown", "orders", f"id {OLD}; 3 partitions", at(1), 4),
        ("g", "topic_deleted", "orders", f"id {OLD}", at(1), 5),
        ("g", "topic_created", "orders", f"id {NEW}", at(2), 7),
    ]
    assert set(events["log"]) == {METADATA}
    assert set(events["leader_epoch"]) == {4}


def test_what_befell_a_topic_may_not_concern_a_group_whose_use_of_it_is_in_doubt() -> None:
    doubt = "a lost line"
    uses = used({"group_id": ["g", "h", "h"], "topic": ["orders"] * 2 + ["other"]}, doubt, "h")
    for events in (
        topic_events(uses, topic_changes(topic_records(LOG), NAMED)),
        config_events(uses, config_records(LOG)),
    ):
        assert not events.is_empty()
        assert {row["missing"] for row in events.to_dicts() if row["group_id"] == "h"} == {doubt}
        assert {row["complete"] for row in events.to_dicts() if row["group_id"] == "g"} == {True}


def test_a_group_is_there_for_sure_where_one_use_of_a_topic_is() -> None:
    uses = used({"group_id": ["g", "g"], "topic": ["orders", "other"]})
    uses = uses.with_columns(doubt=pl.when(pl.col("topic") == "orders").then(pl.lit("a lost line")))
    events = config_events(uses, config_records(LOG)).to_dicts()
    doubts = {(row["subject"], row["missing"]) for row in events}
    assert doubts == {("topic orders", "a lost line"), ("topic other", None), ("group g", None)}


def test_settings_of_a_group_and_of_its_topics_concern_it_and_secrets_are_withheld() -> None:
    uses = used({"group_id": ["g", "h"], "topic": ["orders", None]})
    events = config_events(uses, config_records(LOG))
    timeout = "consumer.session.timeout.ms"
    assert told(events) == [
        ("g", "config_changed", "topic orders", "retention.ms set to 5", at(2), 10),
        ("g", "config_changed", "topic orders", f"{SECRET} changed, its value withheld", at(2), 11),
        ("g", "config_changed", "group g", f"{timeout} set to 7", at(2), 13),
        ("g", "config_changed", "group g", f"{timeout} unset", at(2), 14),
    ]


def test_only_what_the_log_tells_of_concerns_anybody() -> None:
    named = pl.DataFrame({"topic_id": [OLD, NEW], "topic": ["orders", "orders"]})
    befell = DependencyRecords(topic_changes(topic_records(LOG), named), config_records(LOG))
    uses = used(
        {
            "group_id": ["h", "h", "g", "g", "h"],
            "topic": ["orders", "other", "elsewhere", None, None],
        }
    )
    told_of = uses.filter(befell.is_told)
    assert told_of.drop("doubt").rows() == [
        ("h", "orders"),
        ("h", "other"),
        ("g", "elsewhere"),
        ("g", None),
    ]
    for make, said in ((topic_events, befell.changes), (config_events, befell.settings)):
        assert told(make(uses, said)) == told(make(told_of, said))


def test_another_coordinator_is_told_to_groups_that_were_there_before() -> None:
    def epoch(
        of: str, number: int, leader: int | None, first: int, before: int | None = None
    ) -> dict[str, Any]:
        about = {"topic": of, "partition": 0, "leader_epoch": number, "leader": leader}
        about |= {"led_before": before}
        about |= {"unclean": number == 2, "from_offset": first, "from_timestamp": at(first)}
        return {**about, "place": PLACE}

    epochs = [
        epoch(OFFSETS, 0, 1, 0),
        epoch(OFFSETS, 2, 2, 50, 1),
        epoch(OFFSETS, 3, None, 90, 2),
        epoch(OFFSETS, 6, 2, 95, 2),
    ]
    others = [epoch("__share_group_state", 0, 1, 0), epoch("__share_group_state", 1, 2, 9)]
    seen = [
        {"coordinator_partition": 0, "group_id": "old", "seen_at": 20},
        {"coordinator_partition": 0, "group_id": "old", "seen_at": 60},
        {"coordinator_partition": 0, "group_id": "young", "seen_at": 50},
        {"coordinator_partition": 1, "group_id": "elsewhere", "seen_at": 0},
    ]
    schema = {"coordinator_partition": pl.Int32, "group_id": pl.String, "seen_at": pl.Int64}
    found = coordinator_events(
        pl.DataFrame(seen, schema),
        pl.DataFrame([*epochs, *others], schema_overrides={"partition": pl.Int32}),
    )
    last, again = "before it broker 2", "broker 2; it led before, too"
    assert told(found) == [
        (
            "old",
            "coordinator_changed",
            "leader epoch 2",
            "broker 2; before it broker 1; unclean election",
            at(50),
            50,
        ),
        ("old", "coordinator_changed", "leader epoch 3", last, at(90), 90),
        ("young", "coordinator_changed", "leader epoch 3", last, at(90), 90),
        ("old", "coordinator_changed", "leader epoch 6", again, at(95), 95),
        ("young", "coordinator_changed", "leader epoch 6", again, at(95), 95),
    ]
