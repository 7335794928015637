"""Lengths of time of columns read as those of single values."""

from __future__ import annotations

import polars as pl
from hypothesis import given
from hypothesis import strategies as st

from reports.layout.cells import durations
from reports.quantities import duration

EDGES = (0, 1, 999, 1000, 59_999, 60_000, 3_599_999, 3_600_000, 3_661_000, 86_400_000, 90_061_000)


@given(st.lists(st.none() | st.sampled_from(EDGES) | st.integers(0, 10**12)))
def test_a_column_says_what_each_value_says(values: list[int | None]) -> None:
    frame = pl.DataFrame({"ms": pl.Series(values, dtype=pl.Int64)})
    told = frame.select(durations(pl.col("ms"))).to_series()
    assert told.to_list() == [duration(each) for each in values]
