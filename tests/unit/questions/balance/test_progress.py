"""How far commits advanced in an epoch, as far as compaction left them all."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import polars as pl
import pytest

from analytics.questions.balance.at_instant import SPAN, with_progress

BEGIN = datetime(2026, 1, 1, tzinfo=UTC)
TIME = pl.Datetime("us", "UTC")


def at(minute: int) -> datetime:
    return BEGIN + timedelta(minutes=minute)


COMMITS = pl.DataFrame(
    {
        "group_id": ["g", "g"],
        "topic": ["t", "t"],
        "partition": pl.Series([0, 1], dtype=pl.Int32),
        "advance": [30, 10],
        "effective_timestamp": pl.Series([at(6), at(7)], dtype=TIME),
        "coordinator_partition": pl.Series([3, 3], dtype=pl.Int32),
    }
)


def case(from_offset: int | None) -> pl.DataFrame:
    return pl.DataFrame(
        {
            SPAN: [0],
            "group_id": ["g"],
            "from_offset": pl.Series([from_offset], dtype=pl.Int64),
            "from_timestamp": pl.Series([at(5)], dtype=TIME),
            "to_timestamp": pl.Series([None], dtype=TIME),
        }
    )


@pytest.mark.parametrize(
    ("from_offset", "compacted_until", "is_told"),
    [
        (20, {}, True),
        (20, {3: 20}, True),
        (20, {4: 99}, True),
        # Of what the cleaner left of it nobody knows what it was a part of.
        (20, {3: 21}, False),
        (None, {3: 1}, False),
        (None, {}, True),
    ],
)
def test_progress_is_told_of_a_time_that_no_cleaner_came_into(
    from_offset: int | None, compacted_until: dict[int, int], *, is_told: bool
) -> None:
    (progress,) = with_progress(case(from_offset), COMMITS, compacted_until)["progress"].to_list()
    assert (progress is not None) == is_told
    if is_told:
        assert [each["advance"] for each in progress] == [30, 10]
