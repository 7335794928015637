"""Random metadata logs, also such as a snapshot cut, held against a broker that applies them."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

import pytest

from analytics.replay.history.partition_history import elections
from analytics.replay.metadata_log import (
    MetadataLog,
    configs,
    metadata_log,
    partition_leaders,
)
from analytics.replay.topics import named_in_records, topics
from tests.support.decoded_frames import frames_of
from tests.support.metadata_records import TABLES
from tests.support.reference_metadata_log import RECOVERING, SECRET, Image, RandomCluster

if TYPE_CHECKING:
    from collections.abc import Iterable

    from tests.support.reference_metadata_log import Step

TOPIC = "__cluster_metadata"
EPOCH = datetime(2026, 1, 1, tzinfo=UTC)
SETTING = ("resource_type", "resource", "name", "value")
Rows = dict[str, list[dict[str, Any]]]


def add(rows: Rows, steps: Iterable[Step], segment: str, first: int) -> int:
    """Add records to a log or a snapshot and return the next offset."""
    offset = first
    for name, value in steps:
        place = {"topic": TOPIC, "partition": 0, "offset": offset, "segment": segment}
        at = EPOCH + timedelta(seconds=offset)
        rows.setdefault(name, []).append({**place, "timestamp": at, "value": value})
        offset += 1
    return offset


def random_log(seed: int, *, is_cut: bool) -> tuple[MetadataLog, Image]:
    cluster = RandomCluster(seed)
    rows: Rows = {}
    feature: Step = ("feature_level_record", {"name": "metadata.version", "feature_level": 20})
    end = add({} if is_cut else rows, [feature, *cluster.records(60)], f"{TOPIC}-0/{0:020}.log", 0)
    # A log from its start has snapshots too, which are not needed.
    checkpoint = f"{TOPIC}-0/{end:020}-0000000001.checkpoint"
    add(rows, [feature, *cluster.snapshot()], checkpoint, 1)
    add(rows, [feature, *cluster.records(40)], f"{TOPIC}-0/{end:020}.log", end)
    return metadata_log(frames_of(rows, TABLES)), cluster.image


@pytest.mark.parametrize("is_cut", [False, True])
@pytest.mark.parametrize("seed", range(12))
def test_what_is_in_force_is_what_a_broker_has_in_memory(seed: int, *, is_cut: bool) -> None:
    log, image = random_log(seed, is_cut=is_cut)
    living = topics(log, (), named_in_records(log.decoded))
    living = living.filter(living["deleted_at"].is_null())
    assert dict(living.select("topic_id", "topic").iter_rows()) == image.names
    leaders = partition_leaders(log)
    assert {
        (row["topic"], row["partition"]): (
            *(row[name] for name in ("leader", "leader_epoch", "isr", "elr", "unclean")),
        )
        for row in leaders.iter_rows(named=True)
    } == {
        key: (
            None if each.leader == -1 else each.leader,
            each.leader_epoch,
            each.isr,
            each.elr,
            each.recovery == RECOVERING,
        )
        for key, each in image.leaders().items()
    }
    shown = {key: None if key[2] == SECRET else value for key, value in image.settings.items()}
    # Of groups and brokers it has no such setting, and withholds what it does not know.
    shown = {key: value if key[0] == "topic" else None for key, value in shown.items()}
    assert {row[:3]: row[3] for row in configs(log).select(*SETTING).iter_rows()} == shown


@pytest.mark.parametrize("is_cut", [False, True])
@pytest.mark.parametrize("seed", range(12))
def test_the_last_election_of_a_partition_made_its_leader(seed: int, *, is_cut: bool) -> None:
    log, image = random_log(seed, is_cut=is_cut)
    elected = elections(log, topics(log, (), named_in_records(log.decoded)))
    places = elected.select("topic_id", "partition", "leader_epoch")
    assert places.is_unique().all()
    last = elected.sort("leader_epoch").group_by("topic_id", "partition").last()
    found = {
        (row["topic_id"], row["partition"]): (row["leader"], row["leader_epoch"])
        for row in last.iter_rows(named=True)
        if row["topic_id"] in image.names
    }
    assert found == {
        key: (None if each.leader == -1 else each.leader, each.leader_epoch)
        for key, each in image.partitions.items()
    }
