"""Whether a lag grows and when it is gone, by hand-worked numbers."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from analytics.questions.lag.pace import log_ends, with_ends, with_trends
from analytics.replayed.end_offsets import SAMPLES
from schemas.evaluation_rules import lag_rules

NOW = datetime(2026, 11, 21, 12, tzinfo=UTC)
NOW_MS = round(NOW.timestamp() * 1000)
TIME, LONG = pa.timestamp("us", "UTC"), pa.int64()
ROWS = pa.schema(
    [
        ("topic", pa.string()),
        ("partition", pa.int32()),
        *((name, LONG) for name in ("lag", "commits", "unchanged_commits")),
        *((name, LONG) for name in ("timed_commits", "timed_advanced")),
        *((name, TIME) for name in ("first_commit_at", "last_commit_at", "last_advance_at")),
        ("since_at", TIME),
        ("since_offset", LONG),
        ("has_later_gaps", pa.bool_()),
        ("is_undated", pa.bool_()),
        ("complete", pa.bool_()),
    ]
)


def ago(minutes: float) -> datetime:
    return NOW - timedelta(minutes=minutes)


def samples(*ends: tuple[float, int], partition: int = 0) -> list[dict[str, Any]]:
    return [
        {"topic": "t", "partition": partition, "timestamp": ago(minutes), "log_end_offset": end}
        for minutes, end in ends
    ]


def told(sampled: list[dict[str, Any]], **row: Any) -> dict[str, Any]:
    given_row = {
        "topic": "t",
        "partition": 0,
        "commits": 11,
        "unchanged_commits": 1,
        "timed_commits": row.get("commits", 11),
        "timed_advanced": 600,
        "first_commit_at": ago(10),
        "last_commit_at": NOW,
        "last_advance_at": NOW,
        "since_at": ago(10),
        "since_offset": 1000,
        **row,
    }
    ends = log_ends(pa.Table.from_pylist(sampled, SAMPLES))
    rows = pl.DataFrame(pa.Table.from_pylist([given_row], ROWS))
    (found,) = with_trends(rows, ends, NOW_MS, lag_rules()).to_dicts()
    return dict(found)


def test_rates_are_of_the_time_from_the_first_commit_to_the_last() -> None:
    row = told([], lag=None)

    assert row["commits_per_second"] == pytest.approx(10 / 600)
    assert row["records_per_second"] == 1
    assert row["unchanged_share"] == pytest.approx(1 / 11)
    assert (row["trend"], row["drain_bound"]) == (None, "unknown")


@pytest.mark.parametrize(
    "lost",
    [
        {"complete": False},
        {"complete": True, "has_later_gaps": True},
        {"complete": True, "is_undated": True},
    ],
    ids=["lost behind", "lost between", "undated"],
)
def test_where_commits_may_be_lost_or_are_undated_nothing_tells_how_fast_a_group_is(
    lost: dict[str, bool],
) -> None:
    sampled = samples((20, 1100), (0, 1700))
    whole = told(sampled, lag=40, complete=True, has_later_gaps=False, is_undated=False)
    assert (whole["commits_per_second"], whole["records_per_second"]) == (pytest.approx(1 / 60), 1)
    assert whole["trend"] is not None

    for last_advance in (NOW, ago(600)):
        row = told(sampled, lag=40, last_advance_at=last_advance, **lost)
        assert (row["commits_per_second"], row["records_per_second"]) == (None, None)
        assert (row["trend"], row["lag_per_second"], row["trend_since"]) == (None, None, None)
        assert (row["drain_ms"], row["drain_bound"]) == (None, "unknown")


def test_a_commit_of_later_than_the_instant_measures_nothing() -> None:
    """A clock was years ahead once: that is no pace, and nobody stands still for it."""
    for name in ("last_commit_at", "last_advance_at"):
        row = told([], lag=40, **{name: NOW + timedelta(days=4000)})
        assert (row["commits_per_second"], row["records_per_second"]) == (None, None)
        assert (row["drain_ms"], row["drain_bound"]) == (None, "unknown")


def test_a_lag_that_grows_is_never_gone() -> None:
    # Ten minutes ago 1500 - 1000 were left, now 1100: one record a second more.
    row = told(samples((20, 1000), (0, 2000)), lag=1100)

    assert (row["trend"], row["trend_since"], row["lag_per_second"]) == ("growing", ago(10), 1)
    assert (row["drain_ms"], row["drain_bound"]) == (None, "never")


def test_a_single_commit_of_lately_does_not_show_that_nothing_is_read() -> None:
    """The cleaner leaves the last commit of a key: that the group read on is not known."""
    alone = {"commits": 1, "unchanged_commits": 0, "timed_advanced": 0, "last_advance_at": None}
    alone |= {"since_at": None, "since_offset": None}
    bounds = [
        told([], lag=40, first_commit_at=at, last_commit_at=at, **alone)["drain_bound"]
        for at in (NOW, ago(60 * 24))
    ]
    assert bounds == ["unknown", "never"]


def test_a_lag_that_shrinks_is_gone_when_the_line_reaches_zero() -> None:
    # From 900 to 300 in ten minutes: the other 300 are gone in five.
    row = told(samples((20, 1800), (0, 2000)), lag=300)

    assert (row["trend"], row["lag_per_second"]) == ("shrinking", -1)
    assert (row["drain_ms"], row["drain_bound"]) == (5 * 60_000, "estimated")


def test_a_lag_that_hardly_changed_is_steady() -> None:
    # From 1000 to 1040: less than a twentieth.
    row = told(samples((20, 2000), (10, 2000), (0, 2300)), lag=1040)

    assert (row["trend"], row["drain_bound"]) == ("steady", "never")


def test_without_a_sample_before_it_a_time_to_drain_is_a_bound() -> None:
    row = told(samples((0, 2000)), lag=120, since_at=NOW)

    assert (row["trend"], row["lag_per_second"]) == (None, None)
    assert (row["drain_ms"], row["drain_bound"]) == (2 * 60_000, "at_least")


def test_the_largest_numbers_are_taken() -> None:
    row = told([], lag=(1 << 63) - 1, since_offset=(1 << 63) - 1, timed_advanced=(1 << 63) - 1)
    assert row["drain_bound"] == "at_least"
    slow = told([], lag=(1 << 63) - 1, timed_advanced=1)
    assert slow["drain_ms"] == 1 << 53


def test_what_nobody_reads_never_drains() -> None:
    row = told([], lag=120, last_advance_at=ago(6))

    assert (row["drain_ms"], row["drain_bound"]) == (None, "never")


def test_nothing_to_read_is_drained() -> None:
    assert told([], lag=0)["drain_ms"] == 0
    assert told([], lag=-5)["drain_bound"] == "exact"


def test_where_a_log_was_made_anew_no_end_lies_between_two_samples() -> None:
    row = told(samples((20, 5000), (0, 2000)), lag=1100)

    assert row["trend"] is None


@given(
    sampled=st.lists(
        st.tuples(st.integers(0, 3), st.integers(0, 50), st.integers(0, 99)),
        unique_by=lambda each: each[:2],
    ),
    asked=st.lists(st.tuples(st.integers(0, 4), st.integers(-2, 52)), min_size=1),
)
def test_ends_between_samples_are_those_of_a_slow_search(
    sampled: list[tuple[int, int, int]], asked: list[tuple[int, int]]
) -> None:
    rows = [row for place, at, end in sampled for row in samples((-at, end), partition=place)]
    ends = log_ends(pa.Table.from_pylist(rows, SAMPLES))
    question = pl.DataFrame(
        {
            "topic": ["t"] * len(asked),
            "partition": pl.Series([place for place, _ in asked], dtype=pl.Int32),
            "since_at": pl.Series([ago(-at) for _, at in asked], dtype=pl.Datetime("us", "UTC")),
        }
    )
    found = with_ends(question, ends)["end_then"]

    for (place, at), end in zip(asked, found.to_list(), strict=True):
        known = sorted((when, value) for number, when, value in sampled if number == place)
        before = [each for each in known if each[0] <= at]
        after = [each for each in known if each[0] > at]
        if before and before[-1][0] == at:
            assert end == before[-1][1]
        elif before and after and before[-1][1] <= after[0][1]:
            (begun, low), (ended, high) = before[-1], after[0]
            assert end == pytest.approx(low + (high - low) * (at - begun) / (ended - begun))
        else:
            assert end is None, "nothing tells"
