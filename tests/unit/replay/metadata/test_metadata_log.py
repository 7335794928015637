"""Topics, settings and leaders from a short metadata log."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import polars as pl
import pytest

from analytics.replay.metadata_log import (
    MetadataLog,
    configs,
    metadata_log,
    partition_leaders,
)
from analytics.replay.topics import named_in_records, topics
from tests.support.decoded_frames import frames_of
from tests.support.metadata_records import NEW, OLD, TABLES, change, partition, topic

GHOST = "6bQYs6Z9T1ayNK9_zQO6Gw"
SEGMENT = "__cluster_metadata-0/00000000000000000000.log"
SECRET = "listener.name.x.ssl.keystore.password"


def setting(kind: int, resource: str, name: str, value: str | None) -> tuple[str, dict[str, Any]]:
    said = {"resource_type": kind, "resource_name": resource, "name": name, "value": value}
    return "config_record", said


LOG: list[tuple[str, dict[str, Any] | None]] = [
    ("feature_level_record", {"name": "metadata.version", "feature_level": 30}),
    topic("t", OLD),
    setting(2, "t", "retention.ms", "1"),
    partition(OLD, 0, 1),
    ("remove_topic_record", {"topic_id": OLD}),
    topic("t", NEW),
    setting(2, "t", "segment.ms", "2"),
    partition(NEW, 0, 1),
    partition(NEW, 1, 2),
    change(NEW, isr=[1]),
    change(NEW, leader=2, isr=[2], leader_recovery_state=1),
    ("begin_transaction_record", {}),
    topic("ghost", GHOST),
    ("abort_transaction_record", {}),
    setting(4, "", SECRET, "hunter2"),
    setting(4, "", "offsets.retention.minutes", "5"),
    setting(32, "g", "share.session.timeout.ms", "9"),
    setting(32, "g", "share.session.timeout.ms", None),
]


SNAPSHOT = "__cluster_metadata-0/00000000000000000020-0000000001.checkpoint"


@pytest.fixture(scope="module")
def log() -> MetadataLog:
    rows: dict[str, list[dict[str, Any]]] = {}
    for offset, (name, value) in enumerate(LOG):
        place = {"topic": "__cluster_metadata", "partition": 0, "offset": offset}
        segment = "__cluster_metadata-0/00000000000000000000.log"
        rows.setdefault(name, []).append({**place, "segment": segment, "value": value})
    return metadata_log(frames_of(rows, TABLES))


def topics_of(log: MetadataLog, *others: pl.DataFrame) -> list[dict[str, Any]]:
    return topics(log, others, named_in_records(log.decoded)).to_dicts()


def test_each_life_of_a_name_is_a_topic_and_aborted_ones_never_were(log: MetadataLog) -> None:
    found = {(row["topic"], row["topic_id"], row["partitions"]) for row in topics_of(log)}
    assert found == {("t", OLD, 1), ("t", NEW, 2)}


def test_a_lesser_source_tells_how_many_partitions_where_no_better_one_does(
    log: MetadataLog,
) -> None:
    columns = {"topic": str, "topic_id": str, "partitions": pl.Int32, "source": str}
    directories = [("t", NEW, None, "partition_metadata"), ("u", GHOST, None, "partition_metadata")]
    named = [("t", NEW, 9, "side_file"), ("u", GHOST, 3, "side_file"), ("v", None, 4, "side_file")]
    others = [pl.DataFrame(rows, columns, orient="row") for rows in (directories, named)]
    found = {
        (row["topic"], row["topic_id"]): (row["partitions"], row["source"])
        for row in topics_of(log, *others)
    }
    assert found == {
        ("t", OLD): (1, "metadata_log"),
        ("t", NEW): (2, "metadata_log"),
        ("u", GHOST): (3, "partition_metadata"),
        ("v", None): (4, "side_file"),
    }


def test_records_before_the_oldest_snapshot_tell_when_topics_came_and_went() -> None:
    place = {"topic": "__cluster_metadata", "partition": 0}

    def logged(offset: int, **value: str) -> dict[str, Any]:
        segment = "__cluster_metadata-0/00000000000000000010.log"
        at = datetime(2026, 11, 21, 12, 0, offset, tzinfo=UTC)
        return {**place, "offset": offset, "segment": segment, "timestamp": at, "value": value}

    def stored(offset: int, **value: str) -> dict[str, Any]:
        return {**place, "offset": offset, "segment": SNAPSHOT, "value": value}

    rows = {
        "feature_level_record": [logged(10), stored(1)],
        "topic_record": [
            logged(11, name="t", topic_id=NEW),
            stored(2, name="t", topic_id=NEW),
            stored(3, name="older", topic_id=OLD),
        ],
        "remove_topic_record": [logged(12, topic_id=GHOST)],
        "offset_commit": [
            {
                "key": {"group": "g", "topic": "gone", "partition": 0},
                "value": {"topic_id": GHOST},
            }
        ],
    }
    found = {
        row["topic"]: (
            row["created_at"] and row["created_at"].second,
            row["deleted_at"] and row["deleted_at"].second,
        )
        for row in topics_of(metadata_log(frames_of(rows, TABLES)))
    }
    assert found == {"t": (11, None), "older": (None, None), "gone": (None, 12)}


def test_a_removal_that_a_log_repeats_makes_no_second_topic() -> None:
    place = {"topic": "__cluster_metadata", "partition": 0, "segment": SEGMENT}
    rows: dict[str, list[dict[str, Any]]] = {
        name: [
            {
                **place,
                "offset": offset,
                "timestamp": datetime(2026, 11, 21, 8, 0, offset, tzinfo=UTC),
                "value": value,
            }
            for offset, value in records
        ]
        for name, records in {
            "topic_record": [(1, {"name": "t", "topic_id": OLD})],
            "remove_topic_record": [(2, {"topic_id": OLD}), (3, {"topic_id": OLD})],
        }.items()
    }

    (found,) = topics_of(metadata_log(frames_of(rows, TABLES)))

    assert found["deleted_at"].second == 2


def test_changes_are_merged_into_registrations(log: MetadataLog) -> None:
    told = partition_leaders(log).select("partition", "leader", "leader_epoch", "isr", "unclean")
    found = sorted(told.iter_rows())
    assert found == [(0, 2, 1, [2], True), (1, 2, 0, [1, 2], False)]


def test_settings_go_with_their_topic_and_secrets_are_withheld(log: MetadataLog) -> None:
    found = {
        (kind, name): value
        for kind, name, value in configs(log).select("resource_type", "name", "value").iter_rows()
    }
    assert found == {
        ("topic", "segment.ms"): "2",
        ("broker", SECRET): None,
        ("broker", "offsets.retention.minutes"): "5",
    }
