"""Where logs ended at an instant, by time indexes that brackets it, worked by hand."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from analytics.dump.files.data_logs import SEGMENTS, TIMES
from analytics.replayed.data_logs import STABLE, DataLogs, data_logs
from jobs.cli.console import Console
from jobs.workspaces.replayed import replayed
from tests.support.written_workspace import write_workspace

NOON = datetime(2026, 11, 21, 12, tzinfo=UTC)


def at(minutes: float) -> datetime:
    return NOON + timedelta(minutes=minutes)


def logs(*entries: tuple[float, int], is_append_time: bool = True, partition: int = 0) -> DataLogs:
    rows = [
        {"topic": "orders", "partition": partition, "timestamp": at(minutes), "offset": offset}
        | {"is_append_time": is_append_time}
        for minutes, offset in entries
    ]
    times = pa.Table.from_pylist(rows, TIMES).drop_columns(["copy"])
    return DataLogs(SEGMENTS.empty_table(), times, STABLE.empty_table())


def end_at(found: DataLogs, minutes: float) -> dict[str, Any] | None:
    rows = found.ends_at(at(minutes)).to_pylist()
    return rows[0] if rows else None


def test_between_two_entries_an_end_is_interpolated_and_its_bounds_are_said() -> None:
    # At noon offset 99 was written; ten minutes later 199, which was not there before.
    row = end_at(logs((0, 99), (10, 199)), 5)

    assert row is not None
    assert (row["log_end_offset"], row["log_end_bound"]) == (149, "interpolated")
    assert (row["log_end_least"], row["log_end_most"]) == (100, 199)


def test_after_the_last_batch_nothing_was_written() -> None:
    row = end_at(logs((0, 99), (10, 199)), 10)

    assert row is not None
    assert (row["log_end_offset"], row["log_end_bound"], row["log_end_most"]) == (
        200,
        "exact",
        None,
    )


def test_where_the_next_record_is_the_next_offset_an_end_is_exact() -> None:
    row = end_at(logs((0, 99), (10, 100)), 9)

    assert row is not None
    assert (row["log_end_offset"], row["log_end_bound"]) == (100, "exact")


def test_before_the_first_entry_and_by_producers_clocks_nothing_is_known() -> None:
    assert end_at(logs((0, 99)), -1) is None
    assert end_at(logs((0, 99), (10, 199), is_append_time=False), 5) is None


def test_samples_are_the_brokers_and_not_later_than_the_instant() -> None:
    found = logs((0, 99), (10, 199)).samples(at(5)).to_pylist()

    assert [(each["timestamp"], each["log_end_offset"]) for each in found] == [(NOON, 100)]
    assert logs((0, 99), is_append_time=False).samples(at(5)).num_rows == 0
    assert logs((0, 99), is_append_time=False).written().num_rows == 1


def test_the_leaders_copy_is_read_and_a_workspace_without_the_tables_tells_nothing(
    tmp_path: Path,
) -> None:
    held = {"topic": "orders", "partition": 0, "topic_id": "A", "log_start_offset": 0}
    data = [
        {**held, "copy": f"broker-{each}", "log_end_offset": end, "is_exact": True}
        for each, end in ((1, 300), (2, 200))
    ]
    space = write_workspace(
        tmp_path / "space",
        {
            "partition_leaders": [
                {"topic": "orders", "partition": 0, "leader": 2, "isr": [1, 2]}
                | {"leader_epoch": 0, "unclean": False}
            ]
        },
        copies=[{"name": "broker-1", "node_id": 1}, {"name": "broker-2", "node_id": 2}],
        data_partitions=data,
    )
    with replayed(Console(quiet=True), inputs=[str(space)]) as state:
        assert data_logs(state).times.num_rows == 0
    for name, schema, rows in (
        ("data_segments", SEGMENTS, []),
        (
            "data_log_times",
            TIMES,
            [
                {"topic": "orders", "partition": 0, "copy": f"broker-{each}", "timestamp": NOON}
                | {"offset": each, "is_append_time": True}
                for each in (1, 2)
            ],
        ),
    ):
        folder = space / "data_logs" / name
        folder.mkdir(parents=True)
        pq.write_table(pa.Table.from_pylist(rows, schema), folder / "part-00000.parquet")
    with replayed(Console(quiet=True), inputs=[str(space)]) as state:
        assert data_logs(state).times["offset"].to_pylist() == [2]
