"""Times, and lengths of time, of columns read as those of single values."""

from __future__ import annotations

import polars as pl
import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from analytics.epoch_times import LAST_MS, iso_time
from reports.layout.cells import durations, times
from reports.plain_text import duration

EDGES = (0, 1, 999, 1000, 59_999, 60_000, 3_599_999, 3_600_000, 3_661_000, 86_400_000, 90_061_000)


@given(st.lists(st.none() | st.sampled_from(EDGES) | st.integers(0, 10**12)))
def test_a_column_says_what_each_value_says(values: list[int | None]) -> None:
    frame = pl.DataFrame({"ms": pl.Series(values, dtype=pl.Int64)})
    told = frame.select(durations(pl.col("ms"))).to_series()
    assert told.to_list() == [duration(each) for each in values]


@given(st.lists(st.none() | st.sampled_from((0, 1, 999, LAST_MS)) | st.integers(0, LAST_MS)))
def test_a_column_says_what_each_instant_says(values: list[int | None]) -> None:
    column = pa.chunked_array([pa.array(values, pa.timestamp("ms", "UTC"))])
    micros = pa.timestamp("us", "UTC")
    for each in (column, column.cast(micros)):
        assert times(each).to_pylist() == [iso_time(value) for value in values]
    assert times(column).type == pa.string()


def test_parts_of_a_millisecond_are_left_out() -> None:
    column = pa.chunked_array([pa.array([1_999], pa.timestamp("us", "UTC"))])
    assert times(column).to_pylist() == ["1970-01-01T00:00:00.001Z"]
