"""Records that count at an instant, held against looking at one record after the other."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from random import Random
from typing import Any

import polars as pl
import pytest

from analytics.contracts import TIME
from analytics.replay.log.log_times import END, PLACE, AsOf, above_log_starts, cut, cut_all

OFFSETS, METADATA = "__consumer_offsets", "__cluster_metadata"
NOON = datetime(2024, 5, 1, 12, tzinfo=UTC)
ENDS = {(OFFSETS, 0): 20, (OFFSETS, 2): 0, (METADATA, 0): 30}
TIMELESS = {(OFFSETS, 1): 25, ("elsewhere", 0): 1}
STARTS = {(OFFSETS, 0): 5, (METADATA, 0): 3}
INSTANTS = {
    "end": END,
    "offsets": AsOf(ENDS),
    "time": AsOf(timestamp_ms=round(NOON.timestamp() * 1000)),
    "both": AsOf(ENDS, round(NOON.timestamp() * 1000)),
}


def records() -> pl.DataFrame:
    chance = Random(1)
    rows = []
    for number in range(3000):
        topic = chance.choice((OFFSETS, METADATA))
        partition = 0 if topic == METADATA else chance.randrange(4)
        at = NOON + timedelta(microseconds=chance.choice((-1000, -1, 0, 1, 1000)))
        time = None if chance.random() < 0.3 else at
        snapshot = f"{chance.randrange(1, 60):020}-0000000001.checkpoint"
        segment = snapshot if topic == METADATA and chance.random() < 0.5 else f"{0:020}.log"
        rows.append((number, topic, partition, chance.randrange(40), time, segment))
    kinds = pl.Schema(
        {
            "number": pl.Int64(),
            "topic": pl.String(),
            "partition": pl.Int32(),
            "offset": pl.Int64(),
            "timestamp": TIME,
            "segment": pl.String(),
        }
    )
    return pl.DataFrame(rows, kinds, orient="row")


def counts(row: dict[str, Any], instant: AsOf) -> bool:
    key, offset = (row["topic"], row["partition"]), row["offset"]
    segment = row["segment"]
    place = int(segment[:20]) - 1 if segment.endswith(".checkpoint") else offset
    if place >= instant.offsets.get(key, 1000):
        return False
    if instant.timestamp_ms is None:
        return True
    time = row["timestamp"]
    if time is None:
        return bool(offset < TIMELESS.get(key, 1000))
    return bool(time <= datetime.fromtimestamp(instant.timestamp_ms / 1000, UTC))


@pytest.mark.parametrize("name", INSTANTS)
def test_those_records_count_that_were_written_by_then(name: str) -> None:
    rows, instant = records(), INSTANTS[name]
    found = cut_all({"a": rows, "b": rows.clear()}, instant, timeless=TIMELESS)
    wanted = [row["number"] for row in rows.iter_rows(named=True) if counts(row, instant)]
    assert found["a"]["number"].to_list() == wanted
    assert found["b"].is_empty()
    assert len(wanted) < len(rows) or instant.is_end


def test_what_was_deleted_below_the_log_start_is_left_out() -> None:
    rows = records()
    kept = above_log_starts({"a": rows}, STARTS)["a"]
    wanted = [
        row["number"]
        for row in rows.iter_rows(named=True)
        if row["offset"] >= STARTS.get((row["topic"], row["partition"]), 0)
    ]
    assert kept["number"].to_list() == wanted
    assert len(wanted) < len(rows)


@pytest.mark.parametrize("name", INSTANTS)
def test_rows_with_their_place_beside_are_cut_alike(name: str) -> None:
    rows, instant = records(), INSTANTS[name]
    place = {column: pl.col(field) for column, field in PLACE.items()}
    beside = rows.select(
        "number",
        "segment",
        pl.lit("mine").alias("topic"),
        **place,
    )
    found = cut(beside, instant, log_starts=STARTS, timeless_ends=TIMELESS)
    above = above_log_starts({"a": rows}, STARTS)
    assert found["number"].equals(cut_all(above, instant, timeless=TIMELESS)["a"]["number"])
    assert found.columns == ["number", "segment", "topic"]
