"""How lags grew since an earlier dump, worked by hand."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import polars as pl
import pyarrow as pa

from analytics.questions.lag.question import lag_growth

NOON = datetime(2026, 11, 21, 12, tzinfo=UTC)
ROWS = pa.schema(
    [
        *((name, pa.string()) for name in ("group_id", "topic")),
        ("partition", pa.int32()),
        *((name, pa.int64()) for name in ("lag", "log_end_offset", "committed_offset")),
    ]
)


def lags(*rows: tuple[int, int | None, int | None, int | None]) -> pl.DataFrame:
    names = ("partition", "lag", "log_end_offset", "committed_offset")
    told = [{"group_id": "g", "topic": "t", **dict(zip(names, each, strict=True))} for each in rows]
    return pl.DataFrame(pa.Table.from_pylist(told, ROWS))


def test_the_fastest_growth_comes_first_with_what_it_is_made_of() -> None:
    then = lags((0, 10, 100, 90), (1, 10, 100, 90), (2, 5, 50, None))
    now = lags((0, 4, 130, 126), (1, 70, 200, 130), (2, 8, 53, None))
    found = lag_growth(then, now, NOON, NOON + timedelta(hours=2)).to_dicts()

    assert [(row["partition"], row["grown"]) for row in found] == [(1, 60), (2, 3), (0, -6)]
    assert (found[0]["appended"], found[0]["committed"], found[0]["grown_per_hour"]) == (
        100,
        40,
        30,
    )
    assert found[1]["committed"] is None


def test_what_is_not_known_at_both_and_another_log_are_left_out() -> None:
    then = lags((0, 10, 100, 90), (1, None, None, 90), (2, 10, 100, 90))
    now = lags((0, 10, 50, 40), (1, 3, 100, 97), (3, 1, 10, 9))

    assert lag_growth(then, now, NOON, NOON + timedelta(hours=1)).height == 0
