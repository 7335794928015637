"""What a real broker's time indexes tell, held against what its clients were told of records."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from functools import cache
from pathlib import Path

import polars as pl
import pyarrow as pa
import pytest

from analytics.dump.copies.plan import next_offset
from analytics.dump.files.data_logs import data_segments_and_times
from analytics.dump.files.inputs import recognize
from analytics.dump.files.log_dirs import read_copies
from analytics.questions.lag.pace import AT_LEAST, EXACT, UNKNOWN, log_ends, with_time_lags
from analytics.replayed.data_logs import STABLE, DataLogs

DATA = Path(__file__).parents[2] / "data" / "time-indexes"
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
STAMPED = [("stamped", 0), ("stamped", 1)]


@cache
def timeline(event: str) -> list[list[object]]:
    lines = (DATA / "timeline.jsonl").read_text(encoding="utf-8").splitlines()
    return [each for each in map(json.loads, lines) if each[0] == event]


@cache
def times_of(topic: str, partition: int) -> list[int]:
    """Return the timestamp of each record, by offset."""
    told = {
        offset: at
        for _, name, number, offset, at in timeline("produced")
        if (name, number) == (topic, partition)
    }
    assert sorted(told) == list(range(len(told)))  # type: ignore[type-var]
    return [int(told[offset]) for offset in range(len(told))]  # type: ignore[call-overload]


@cache
def logs() -> DataLogs:
    copies = read_copies(recognize([str(DATA / "broker-1")]).disks, next_offset, [])
    segments, times = data_segments_and_times(copies)
    return DataLogs(
        segments.drop_columns(["copy"]), times.drop_columns(["copy"]), STABLE.empty_table()
    )


def at(ms: int) -> datetime:
    return EPOCH + timedelta(milliseconds=ms)


def between(found: DataLogs, topic: str, partition: int, ms: int) -> tuple[int, int, int] | None:
    """Return the least that the end was at a time, what it is said to be, and the most."""
    for row in found.ends_at(at(ms)).to_pylist():
        if (row["topic"], row["partition"]) == (topic, partition):
            end = row["log_end_offset"]
            return row["log_end_least"] or end, end, row["log_end_most"] or end
    return None


@pytest.mark.parametrize("step", [149, pytest.param(37, marks=pytest.mark.long)])
@pytest.mark.parametrize(("topic", "partition"), STAMPED)
def test_at_every_time_the_end_is_where_the_index_says(
    topic: str, partition: int, step: int
) -> None:
    times = times_of(topic, partition)
    exact = told = 0
    for ms in range(times[0] - 100, times[-1] + 500, step):
        found = between(logs(), topic, partition, ms)
        true = sum(each <= ms for each in times)
        if found is None:
            assert true <= 30, "before the first entry"
            continue
        least, end, most = found
        assert least <= true <= most, ms
        assert least <= end <= most
        told += 1
        exact += least == most
    assert told > 37_000 // step
    assert exact > 0


def test_brokers_listed_offsets_lie_where_the_index_says() -> None:
    compared = 0
    for _, topic, partition, offset, since in timeline("listed"):
        found = between(logs(), str(topic), int(partition), int(since) - 1)  # type: ignore[call-overload]
        if found is not None:
            true = len(times_of(str(topic), int(partition))) if offset == -1 else offset  # type: ignore[call-overload]
            assert found[0] <= true <= found[2]  # type: ignore[operator]
            compared += 1
    assert compared > 60


@pytest.mark.parametrize(("topic", "partition"), [*STAMPED, ("created", 0), ("compacted", 0)])
def test_how_old_unread_records_are_is_off_by_no_more_than_said(topic: str, partition: int) -> None:
    times = times_of(topic, partition)
    as_of = max(times) + 1_000
    offsets = range(len(times) + 1)
    rows = pa.table(
        {
            "topic": [topic] * len(offsets),
            "partition": pa.array([partition] * len(offsets), pa.int32()),
            "committed_offset": pa.array(offsets, pa.int64()),
            "lag": pa.array([len(times) - each for each in offsets], pa.int64()),
        }
    )
    samples = log_ends(logs().samples(at(as_of)))
    written = log_ends(logs().written())
    bounds = {EXACT: 0, AT_LEAST: 0, UNKNOWN: 0}
    found = with_time_lags(pl.DataFrame(rows), samples, written, as_of).to_dicts()
    for offset, row in zip(offsets, found, strict=True):
        bounds[row["time_lag_bound"]] += 1
        if offset == len(times):
            assert row["time_lag_ms"] == 0
        elif row["time_lag_bound"] == EXACT:
            assert abs(row["time_lag_ms"] - (as_of - times[offset])) <= row["time_lag_within_ms"]
        elif row["time_lag_bound"] == AT_LEAST:
            assert row["time_lag_ms"] <= as_of - min(times[offset:])
    # Of the last record of `created` nothing is known: it is older than one before it.
    assert bounds[UNKNOWN] == (topic == "created")
    # Only the broker's own clock may be interpolated.
    assert (bounds[EXACT] > len(times) / 2) == (topic == "stamped")


def test_the_newest_record_of_each_closed_segment_is_known() -> None:
    rows = logs().segments.to_pylist()
    for topic, partition in [*STAMPED, ("created", 0)]:
        times = times_of(topic, partition)
        files = [row for row in rows if (row["topic"], row["partition"]) == (topic, partition)]
        ends = [*(row["base_offset"] for row in files[1:]), len(times)]
        for row, end in zip(files, ends, strict=True):
            newest = max(times[row["base_offset"] : end])
            if row["is_largest"]:
                assert row["largest_timestamp"] == at(newest)
            assert row["largest_timestamp"] <= at(newest)
        assert sum(row["is_largest"] for row in files) >= len(files) - 1
