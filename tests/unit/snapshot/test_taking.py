"""What of a cluster goes into a snapshot's document, and how fast it is read."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from analytics.snapshot import taking
from analytics.snapshot.cluster_description import LogEdges, Topics
from analytics.snapshot.log_extents import FETCH_BYTES, Reading, ReadLog
from analytics.snapshot.taking import Limits, take_snapshot
from schemas.snapshot import Log, Partition, Snapshot, Topic, Unread


def log(topic: str, partition: int, failure: str | None) -> Log:
    return Log(topic, partition, 1, 0, 0, 9, False, 9, 100, 1, None, failure)


def test_what_fails_of_a_whole_topic_for_one_reason_is_named_once() -> None:
    logs = [
        log("__consumer_offsets", 0, None),
        log("__consumer_offsets", 1, "slow"),
        *(log("__transaction_state", each, "refused") for each in range(3)),
    ]
    assert taking._not_read(logs) == [
        Unread("__consumer_offsets-1", "slow"),
        Unread("__transaction_state", "refused"),
    ]


INTERNAL = "__consumer_offsets"


class MovingCluster:
    """A cluster whose logs have grown by the time that the internal ones are read.

    Attributes:
        errors: Of topics that cannot be described.
        end: Of all logs.
    """

    bootstrap = "broker:9092"
    seconds = 1.0

    def __init__(self, errors: Mapping[str, str]) -> None:
        self.errors = dict(errors)
        self.end = 10

    def described(self, _cluster: object, names: object = None) -> Topics:
        partition = Partition(0, 1, 3, [1], [1], None, None, None, None)
        topics = [INTERNAL] if names else [INTERNAL, "orders"]
        return Topics(
            by_name={
                each: Topic(each, None, each == INTERNAL, [partition], None) for each in topics
            },
            errors={} if names else self.errors,
        )

    def edges(self, _cluster: object, topics: Mapping[str, Topic]) -> LogEdges:
        places = [(each, 0) for each in topics]
        return LogEdges(dict.fromkeys(places, 0), dict.fromkeys(places, self.end), {})

    def later_ends(self, _cluster: object, topics: Iterable[Topic]) -> list[Topic]:
        return [
            replace(each, partitions=[replace(each.partitions[0], later_end_offset=self.end)])
            for each in topics
        ]

    def read_logs(self, reading: Any, topics: Topics, *_: Any) -> Iterator[Log]:
        (partition,) = topics.by_name[INTERNAL].partitions
        (reading.folder / f"{INTERNAL}-0").mkdir()
        self.end = 25
        yield Log(INTERNAL, 0, 1, 3, 0, partition.log_end_offset, False, 10, 7, 1, None, None)


def snapshot_of(cluster: MovingCluster, out: Path, monkeypatch: pytest.MonkeyPatch) -> Snapshot:
    monkeypatch.setattr(taking, "described_topics", cluster.described)
    monkeypatch.setattr(taking, "log_edges", cluster.edges)
    monkeypatch.setattr(taking, "with_later_ends", cluster.later_ends)
    monkeypatch.setattr(taking, "listed_groups", lambda _: ([], []))
    for name in ("topics_with_configs", "brokers_with_configs", "groups_with_configs"):
        monkeypatch.setattr(taking, name, lambda _, described: (described, []))
    monkeypatch.setattr(taking, "_read_logs", cluster.read_logs)
    now = datetime(2026, 11, 27, tzinfo=UTC)
    return take_snapshot(
        cluster,  # type: ignore[arg-type]
        out,
        lambda: now,
        lambda _: None,
        is_checked=False,
    )


def test_no_offset_that_was_committed_while_logs_were_read_is_beyond_the_end_of_its_topic(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    taken = snapshot_of(MovingCluster({}), tmp_path / "dump", monkeypatch)
    partitions = {each.topic: each.partitions[0] for each in taken.topics}
    assert partitions["orders"].later_end_offset == 25
    assert (tmp_path / "dump" / "end-offsets.csv").read_text().splitlines()[1:] == [
        f"{INTERNAL},0,0,10",
        "orders,0,0,25",
    ]


def test_a_topic_that_is_not_described_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    errors = {"clicks": "LEADER_NOT_AVAILABLE"}
    taken = snapshot_of(MovingCluster(errors), tmp_path / "dump", monkeypatch)
    assert taken.unread == [Unread("clicks", "LEADER_NOT_AVAILABLE")]


@pytest.mark.parametrize(
    ("rate", "parallel", "fetch_bytes"),
    [
        (None, 4, FETCH_BYTES),
        (1 << 40, 4, FETCH_BYTES),
        (8_000, 4, 2_000),
        (8_000, 1, 8_000),
        (2, 4, 1),
    ],
)
def test_answers_that_come_at_once_are_of_a_second(
    rate: int | None, parallel: int, fetch_bytes: int
) -> None:
    limits = Limits(bytes_a_second=rate, parallel=parallel)
    reader = limits.reader(MovingCluster({}))  # type: ignore[arg-type]
    assert (reader._pace.fetch_bytes, reader.parallel) == (fetch_bytes, parallel)


def snapshot_of_logs(topic: str, topic_id: str, reading: Reading) -> Snapshot:
    """The document of a snapshot that has one log."""
    partition = Partition(0, 1, 3, [1], [1], 0, 10, None, None)
    described = Topic(topic, topic_id, True, [partition], None)
    now = datetime(2026, 11, 27, tzinfo=UTC)
    text = taking._text(now)
    log = taking._log(described, partition, ReadLog(reading, now))
    return Snapshot(1, "1", text, text, "c", 1, [], [described], [log], [], [])
