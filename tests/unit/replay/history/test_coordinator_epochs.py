"""Leader epochs of internal partitions: where each begins and ends, of all or some records."""

from __future__ import annotations

import random
from datetime import UTC, datetime, timedelta
from typing import Any

import polars as pl
import pytest

from analytics.contracts import TIME
from analytics.replay.history.partition_history import (
    TABLES,
    coordinator_epochs,
    epochs_seen,
    merged_epochs,
)
from tests.support.decoded_frames import frames_of

OFFSETS, SHARE_STATE = "__consumer_offsets", "__share_group_state"
SEGMENT = "00000000000000000000.log"
ELECTED = pl.Schema(
    {
        "topic": pl.String(),
        "partition": pl.Int32(),
        "leader_epoch": pl.Int32(),
        "leader": pl.Int32(),
        "unclean": pl.Boolean(),
        "since": TIME,
    }
)
Rows = dict[str, list[dict[str, Any]]]


def at(second: int) -> datetime:
    return datetime(2026, 1, 1, tzinfo=UTC) + timedelta(seconds=second)


def row(topic: str, partition: int, offset: int, epoch: int | None) -> dict[str, Any]:
    place = {"topic": topic, "partition": partition, "offset": offset, "timestamp": at(offset)}
    in_dump = {"copy": "broker-1", "segment": f"{topic}-{partition}/{SEGMENT}"}
    return {**place, **in_dump, "leader_epoch": epoch, "batch_position": offset * 100}


COMMITS = [(0, 0), (3, 0), (4, 2), (9, 2)]
GROUPS = [(1, 0), (2, 0), (7, 2), (11, 3)]
ROWS: Rows = {
    "offset_commit": [row(OFFSETS, 0, *each) for each in COMMITS],
    "share_snapshot": [row(SHARE_STATE, 0, 5, 0)],
    # A record without an epoch is of message format 0 or 1, and others have no coordinator.
    "control_markers": [
        row(OFFSETS, 0, 12, None),
        row("__cluster_metadata", 0, 0, 7),
        row(OFFSETS, 1, 6, 0),
    ],
}


def test_an_epoch_reaches_from_its_first_record_to_its_last_unless_it_goes_on() -> None:
    rows = {**ROWS, "group_metadata": [row(OFFSETS, 0, *each) for each in GROUPS]}
    elected = [(OFFSETS, 0, 0, 1, False, at(0)), (OFFSETS, 0, 2, 2, True, at(4))]
    found = coordinator_epochs(
        epochs_seen(frames_of(rows, TABLES)), pl.DataFrame(elected, ELECTED, orient="row")
    )
    named = ("topic", "partition", "leader_epoch", "leader", "unclean", "elected_at")
    assert found.select(*named, "from_offset", "to_offset", "records").rows() == [
        (OFFSETS, 0, 0, 1, False, at(0), 0, 3, 4),
        (OFFSETS, 0, 2, 2, True, at(4), 4, 9, 3),
        # The last epoch goes on, and nobody says who leads.
        (OFFSETS, 0, 3, None, None, None, 11, None, 1),
        (OFFSETS, 1, 0, None, None, None, 6, None, 1),
        (SHARE_STATE, 0, 0, None, None, None, 5, None, 1),
    ]
    assert found["led_before"].to_list() == [None, 1, 2, None, None]
    assert found["from_timestamp"].to_list() == [at(each) for each in (0, 4, 11, 6, 5)]
    assert found["to_timestamp"].to_list() == [at(3), at(9), None, None, None]
    assert found["place"].to_list()[1] == {
        "copy": "broker-1",
        "segment": f"{OFFSETS}-0/{SEGMENT}",
        "batch_position": 400,
    }


def test_who_led_before_may_have_written_nothing() -> None:
    rows = frames_of({"offset_commit": [row(OFFSETS, 0, *each) for each in COMMITS]}, TABLES)
    led = [(0, 2), (1, 1), (2, 2)]
    elected = [(OFFSETS, 0, epoch, leader, False, at(0)) for epoch, leader in led]
    found = coordinator_epochs(epochs_seen(rows), pl.DataFrame(elected, ELECTED, orient="row"))
    assert found.select("leader_epoch", "leader", "led_before").rows() == [(0, 2, None), (2, 2, 1)]


def test_tables_that_are_not_there_tell_nothing() -> None:
    (markers,) = frames_of(ROWS, ["control_markers"]).values()
    found = epochs_seen({"control_markers": markers})
    assert found.select("topic", "partition", "from_offset").rows() == [(OFFSETS, 1, 6)]


@pytest.mark.parametrize("seed", range(10))
def test_parts_of_the_records_tell_together_what_all_of_them_tell(seed: int) -> None:
    chance = random.Random(seed)
    rows: Rows = {name: [] for name in TABLES}
    for offset in range(60):
        epoch = max(0, offset // 20 + chance.choice((-1, 0, 0, 1)))
        topic = chance.choice((OFFSETS, SHARE_STATE))
        name = chance.choice(list(rows) if topic == OFFSETS else ["share_snapshot"])
        rows[name].append(row(topic, chance.randrange(2), offset, epoch))
    parts: list[Rows] = [{name: [] for name in rows} for _ in range(4)]
    for name, each in rows.items():
        for record in each:
            chance.choice(parts)[name].append(record)
    whole, *several = (epochs_seen(frames_of(each, TABLES)) for each in (rows, *parts))
    assert whole.height > 4
    key = ("topic", "partition", "leader_epoch")
    assert merged_epochs(several).sort(key).equals(whole.sort(key))
