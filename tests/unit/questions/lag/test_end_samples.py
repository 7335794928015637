"""Where logs ended, and when: as many samples of a partition as a chart has room for."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from itertools import pairwise
from types import SimpleNamespace
from typing import Any, cast

import polars as pl
from hypothesis import given
from hypothesis import strategies as st

from analytics.questions.lag.pace import MOST, end_samples
from analytics.replayed.replayed_workspace import ReplayedWorkspace

BEGUN = datetime(2026, 11, 21, 9, 0, tzinfo=UTC)
KINDS = {"topic": pl.String, "partition": pl.Int32, "at_ms": pl.Int64, "end": pl.Int64}


def at_ms(second: int) -> int:
    return round((BEGUN + timedelta(seconds=second)).timestamp() * 1000)


def state(*answers: tuple[int, int | None]) -> ReplayedWorkspace:
    """A workspace whose snapshot, ten seconds after the beginning, had ends of `t`."""
    partitions = [(number, 1, 0, end, None) for number, end in answers]
    snapshot = {
        "taken_at": (BEGUN + timedelta(seconds=10)).isoformat(),
        "topics": [{"topic": "t", "partitions": partitions}],
    }
    manifest = {"snapshots": [snapshot]} if answers else {}
    return cast("ReplayedWorkspace", SimpleNamespace(is_end=True, manifest=manifest))


def samples(
    *rows: tuple[int, int, int], of: ReplayedWorkspace | None = None, until: int = 1000
) -> list[tuple[Any, ...]]:
    """Samples of partitions of `t`: (partition, seconds since the beginning, end)."""
    known = [("t", number, at_ms(second), end) for number, second, end in rows]
    frame = pl.DataFrame(known, KINDS, orient="row")
    found = end_samples(frame, state() if of is None else of, at_ms(until))
    return [
        (row["partition"], (row["at"] - BEGUN) // timedelta(seconds=1), row["log_end_offset"])
        for row in found.iter_rows(named=True)
    ]


def test_samples_are_in_order_and_not_later_than_the_instant() -> None:
    assert samples((1, 5, 7), (0, 9, 3), (0, 2, 1), (0, 40, 9), until=30) == [
        *((0, 2, 1), (0, 9, 3)),
        (1, 5, 7),
    ]


def test_of_several_ends_at_one_time_the_largest_counts() -> None:
    assert samples((0, 2, 1), (0, 2, 4), (0, 2, 3)) == [(0, 2, 4)]


def test_where_logs_ended_when_a_snapshot_began_is_a_sample() -> None:
    assert samples((0, 30, 9), of=state((0, 5), (1, None))) == [(0, 10, 5), (0, 30, 9)]


@given(count=st.integers(1, 500))
def test_of_many_samples_the_first_the_last_and_some_between_are_kept(count: int) -> None:
    found = samples(*((0, second, second) for second in range(count)))
    assert len(found) == min(count, MOST)
    assert (found[0], found[-1]) == ((0, 0, 0), (0, count - 1, count - 1))
    gaps = [after[1] - before[1] for before, after in pairwise(found)]
    assert not gaps or max(gaps) - min(gaps) <= 1
