"""Sums of lags: what they leave out, and that they say so."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import polars as pl
import pytest

from analytics.questions.lag.sums import sums_of
from schemas.evaluation_rules import lag_rules
from tests.unit.questions.lag.asked_lag import asked


def commit(offset: int, **more: Any) -> dict[str, Any]:
    return {"topic": "t", "partition": 0, "committed_offset": offset, **more}


def sum_of(
    commits: Sequence[tuple[int, int]], ends: Mapping[int, tuple[int, int]]
) -> dict[str, Any]:
    """The sum of a group's lags: of commits by partition, and of the ends that are known."""
    question = asked(
        committed=[commit(offset, partition=partition) for partition, offset in commits],
        ends={("t", partition): end for partition, end in ends.items()},
    )
    (row,) = sums_of(question.found().rows, "group", lag_rules()).to_dicts()
    return {name: row[name] for name in ("lag", "lag_bound", "max_lag", "unknown_lag")}


def test_a_sum_leaves_out_a_commit_beyond_the_end_and_says_so() -> None:
    found = sum_of([(0, 7), (1, 50)], {0: (0, 10), 1: (0, 20)})

    assert found == {"lag": 3, "lag_bound": "at_least", "max_lag": 3, "unknown_lag": 1}


def test_there_is_no_sum_where_all_commits_are_beyond_the_end() -> None:
    found = sum_of([(0, 70), (1, 50)], {0: (0, 10), 1: (0, 20)})

    assert found == {"lag": None, "lag_bound": None, "max_lag": None, "unknown_lag": 2}


def test_a_sum_of_lags_that_are_all_known_is_exact() -> None:
    found = sum_of([(0, 7), (1, 20)], {0: (0, 10), 1: (0, 20)})

    assert found == {"lag": 3, "lag_bound": "exact", "max_lag": 3, "unknown_lag": 0}


@pytest.mark.parametrize(
    ("ends", "bounds", "word"),
    [
        pytest.param((10, 20), ("interpolated", "exact"), "interpolated", id="about"),
        pytest.param((10, None), ("interpolated", None), "at_least_about", id="at-least-about"),
        pytest.param((10, None), ("exact", None), "at_least", id="at-least"),
    ],
)
def test_a_sum_says_what_its_ends_are(
    ends: tuple[int, int | None], bounds: tuple[str, str | None], word: str
) -> None:
    question = asked(
        committed=[commit(7), commit(7, partition=1)], ends={("t", 0): (0, 10), ("t", 1): (0, 20)}
    )
    lags = [None if end is None else end - 7 for end in ends]
    rows = question.found().rows.with_columns(
        pl.Series("lag", lags, pl.Int64), pl.Series("log_end_bound", bounds, pl.String)
    )
    (row,) = sums_of(rows, "group", lag_rules()).to_dicts()

    assert row["lag_bound"] == word


def test_what_nobody_waits_for_makes_no_sum_a_bound() -> None:
    question = asked(
        committed=[commit(7), commit(500, topic="gone")],
        owned=[("g", "t", 0, "m")],
        subscribed={"m": ["t"]},
        ends={("t", 0): (0, 10), ("gone", 0): (0, 100)},
    )
    (row,) = sums_of(question.found().rows, "group", lag_rules()).to_dicts()

    assert (row["lag"], row["lag_bound"], row["stale_lag"]) == (3, "exact", None)
