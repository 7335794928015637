"""A metadata log that begins with a snapshot (KIP-630), held against the snapshots after it.

The broker wrote them from its own memory at offsets of the log that are still there: what is
replayed from the oldest snapshot and the records behind it has to be what the later ones say.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import polars as pl
import pytest

from analytics.replay.log.log_times import AsOf, cut_all
from analytics.replay.metadata_log import configs, metadata_log, partition_leaders
from analytics.replay.topics import named_in_records, topics
from tests.support.decoded_frames import frames_of_dump
from tests.support.dump_log import read_dump_log
from tests.support.metadata_records import TABLES

METADATA = "__cluster_metadata"
DUMP = Path(__file__).parents[3] / "data" / "dumps" / "kafka-4.4.0-random"
PRINTED = DUMP / "tools" / "dump-log" / "broker-1" / f"{METADATA}-0"
RESOURCES = {2: "topic", 4: "broker", 32: "group"}
OLDEST, *LATER = (int(each.name[:20]) for each in sorted(PRINTED.glob("*.checkpoint.txt.gz")))


def printed(end: int) -> dict[str, list[dict[str, Any]]]:
    """Return what Kafka's tool printed of the snapshot that ends at an offset, by record type."""
    (path,) = PRINTED.glob(f"{end:020}-*.checkpoint.txt.gz")
    found: dict[str, list[dict[str, Any]]] = {}
    for batch in read_dump_log(path).batches:
        for record in batch.records:
            if record.payload is not None and record.payload.data is not None:
                found.setdefault(str(record.payload.type), []).append(record.payload.data)
    return found


@pytest.fixture(scope="module")
def decoded() -> dict[str, pl.DataFrame]:
    return frames_of_dump(DUMP / "broker-1", METADATA, TABLES)


def test_the_dump_is_of_a_log_that_snapshots_cut() -> None:
    assert OLDEST > 0
    assert len(LATER) == 2


@pytest.mark.parametrize("end", LATER)
def test_the_log_replayed_to_a_snapshot_is_that_snapshot(
    decoded: dict[str, pl.DataFrame], end: int
) -> None:
    log = metadata_log(cut_all(decoded, AsOf({(METADATA, 0): end})))
    told = printed(end)
    names = {each["topicId"]: each["name"] for each in told["TOPIC_RECORD"]}
    found = topics(log, (), named_in_records(log.decoded))
    living = found.filter(pl.col("deleted_at").is_null()).to_dicts()
    assert {(row["topic_id"], row["topic"]) for row in living} == set(names.items())
    assert {
        row[:3]: row[3]
        for row in configs(log).select("resource_type", "resource", "name", "value").iter_rows()
    } == {
        (RESOURCES[each["resourceType"]], each["resourceName"], each["name"]): each["value"]
        for each in told["CONFIG_RECORD"]
    }
    assert {
        (row["topic"], row["partition"]): tuple(
            row[name] for name in ("leader", "leader_epoch", "isr", "unclean")
        )
        for row in partition_leaders(log).iter_rows(named=True)
    } == {
        (names[each["topicId"]], each["partitionId"]): (
            each["leader"],
            each["leaderEpoch"],
            each["isr"],
            each.get("leaderRecoveryState", 0) == 1,
        )
        for each in told["PARTITION_RECORD"]
    }
    counted = {row["topic"]: row["partitions"] for row in living}
    of_each = [names[each["topicId"]] for each in told["PARTITION_RECORD"]]
    assert counted == {name: of_each.count(name) for name in names.values()}


def test_before_the_oldest_snapshot_the_log_does_not_know_its_topics(
    decoded: dict[str, pl.DataFrame],
) -> None:
    before = metadata_log(cut_all(decoded, AsOf({(METADATA, 0): OLDEST - 1})))
    assert partition_leaders(before).height < len(printed(OLDEST)["PARTITION_RECORD"])
