"""Any number of 64 bits is a time that a calendar has, or none: never an error, never another."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import numpy as np
import polars as pl
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from analytics.contracts import instant
from analytics.epoch_times import LAST_MS, are_times, iso_time, milliseconds_of, time_of
from analytics.time_columns import times_of

ANY_NUMBER = st.integers(-(2**63), 2**63 - 1)
BESIDE_AN_END = (-(2**63), -(2**62), -1, 0, LAST_MS, LAST_MS + 1, 10**16, 2**62, 2**63 - 1)
"""10^16 milliseconds overflow microseconds of 64 bits."""


@pytest.mark.parametrize(
    ("milliseconds", "expected"),
    [
        (0, "1970-01-01T00:00:00.000Z"),
        (1_795_252_563_927, "2026-11-21T09:16:03.927Z"),
        (LAST_MS, "9999-12-31T23:59:59.999Z"),
        (LAST_MS + 1, None),
        (None, None),
        (-1, None),
        (2**62, None),
    ],
)
def test_times_are_utc_with_milliseconds(milliseconds: int | None, expected: str | None) -> None:
    assert iso_time(milliseconds) == expected


@given(st.lists(ANY_NUMBER | st.sampled_from(BESIDE_AN_END)))
@example(list(BESIDE_AN_END))
def test_columns_have_the_times_that_single_numbers_have(numbers: list[int]) -> None:
    expected = [time_of(each) for each in numbers]
    column = np.array(numbers, np.int64)
    frame = pl.DataFrame({"ms": pl.Series(numbers, dtype=pl.Int64)})

    assert times_of(column).to_pylist() == expected
    assert are_times(column).tolist() == [each is not None for each in expected]
    assert frame.select(instant(pl.col("ms")))["ms"].to_list() == expected


def test_what_is_marked_as_none_is_none() -> None:
    marked = times_of(np.array([5, 6], np.int64), np.array([True, False]))

    assert marked.to_pylist() == [None, time_of(6)]


@given(st.integers(0, LAST_MS))
def test_a_time_has_the_milliseconds_it_is_of(milliseconds: int) -> None:
    time = time_of(milliseconds)

    assert time is not None
    assert milliseconds_of(time) == milliseconds
    assert milliseconds_of(time + timedelta(microseconds=999)) == milliseconds


def test_a_time_before_1970_that_was_asked_about_is_rounded_down() -> None:
    assert milliseconds_of(datetime(1969, 12, 31, 23, 59, 59, 999_500, UTC)) == -1
