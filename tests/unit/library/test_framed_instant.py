"""A cut by time is a cut of the log: two cuts frame it, held against a plain loop."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from analytics.decode.tables import table_schema
from analytics.engine.cut_tables import framed
from analytics.replay.log.log_times import AsOf, Frame, frame_rows, frames_of_rows
from analytics.workspace import Workspace
from tests.support.written_workspace import OFFSETS, write_workspace

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
FUTURE = 10**12


def written(folder: Path, times: list[int | None], end_ms: int) -> Workspace:
    """Write a log with records at these times into two tables in turn."""
    end = (EPOCH + timedelta(milliseconds=end_ms)).isoformat(timespec="milliseconds")
    write_workspace(folder, {}, partitions=[{"partition": 0, "last_timestamp": end}])
    for number, name in enumerate(("offset_commit", "consumer_group_metadata")):
        schema = table_schema(name)
        rows = [
            {
                **dict.fromkeys(schema.names),
                "topic": OFFSETS,
                "partition": 0,
                "offset": offset,
                "timestamp": None if time is None else EPOCH + timedelta(milliseconds=time),
                "segment": "00000000000000000000.log",
            }
            for offset, time in enumerate(times)
            if offset % 2 == number
        ]
        path = folder / "decoded" / name
        path.mkdir(parents=True)
        columns = {
            each: pa.array([row[each] for row in rows], schema.field(each).type)
            for each in schema.names
        }
        pq.write_table(pa.table(columns, schema=schema), path / "part-00000.parquet")
    return Workspace(str(folder))


def frame_at(
    folder: Path, times: list[int | None], at_ms: int, end_ms: int = 10**9
) -> Frame | None:
    found = framed(AsOf({}, at_ms), written(folder, times, end_ms), ()).frames
    assert frames_of_rows(frame_rows(found)) == found
    return found.get((OFFSETS, 0))


@settings(
    max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(times=st.lists(st.integers(0, 9), min_size=1, max_size=12), at_ms=st.integers(0, 9))
def test_a_frame_reaches_from_the_first_later_record_to_the_last_that_is_not(
    times: list[int], at_ms: int, tmp_path_factory: pytest.TempPathFactory
) -> None:
    found = frame_at(tmp_path_factory.mktemp("log"), list(times), at_ms)
    later = [offset for offset, time in enumerate(times) if time > at_ms]
    others = [offset for offset, time in enumerate(times) if time <= at_ms]
    if not later or not others or max(others) < min(later):
        assert found is None, "both cuts are one"
        return
    assert found is not None
    assert (found.certain_end, found.possible_end) == (min(later), max(others) + 1)
    assert (found.later_ms, found.earlier_ms) == (times[min(later)], times[max(others)])


def test_what_is_not_believed_counts_where_records_behind_it_count(tmp_path: Path) -> None:
    found = frame_at(tmp_path, [1, 2, FUTURE, FUTURE, 5, 9], 6, end_ms=9)
    assert found is not None
    assert (found.is_certain, found.certain_end) == (True, 5)


def test_what_is_not_believed_counts_at_the_end_of_the_dump(tmp_path: Path) -> None:
    found = frame_at(tmp_path, [1, 2, FUTURE], 9, end_ms=9)
    assert found is not None
    assert found.is_certain
    assert found.certain_end > 3


def test_what_is_not_believed_may_count_between_what_counts_and_what_does_not(
    tmp_path: Path,
) -> None:
    found = frame_at(tmp_path, [1, 2, FUTURE, FUTURE, 5, 9], 3, end_ms=9)
    assert found == Frame(2, 4, FUTURE)
    assert "offsets 2 to 3 had been written by then cannot be told" in found.why(OFFSETS, 0)


def test_a_record_without_a_time_behind_a_later_one_is_later(tmp_path: Path) -> None:
    found = frame_at(tmp_path, [1, 2, 7, None], 3)
    assert found is not None
    assert (found.is_certain, found.certain_end) == (True, 2)
