"""How lags grew since an earlier dump, worked by hand."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path

import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from analytics.engine.part_runs import PartRunner
from analytics.questions.lag import question
from analytics.questions.lag.question import FASTEST_FIRST, growth_in_parts, lag_growth
from analytics.questions.lag.table import WORST_FIRST
from analytics.tables.parted_table import Order, PartedTable

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


def lags_in_files(rows: pl.DataFrame, folder: Path, name: str, files: int) -> PartedTable:
    """Lay rows out by groups: another number of files another way."""
    parts = []
    for number in range(files):
        part = rows.filter(pl.col("group_id").hash(files) % files == number).to_arrow()
        parts.append(str(folder / f"{name}-{number}.parquet"))
        pq.write_table(part.cast(ROWS), parts[-1])
    return PartedTable(ROWS, parts, Order(WORST_FIRST, lambda rows: rows))


def test_growth_is_the_same_of_some_groups_after_the_others(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(question, "AT_ONCE", 40)
    count = 200
    now = pl.DataFrame(
        {
            "group_id": [f"g{number % 37}" for number in range(count)],
            "topic": "t",
            "partition": pl.Series([*range(count)], dtype=pl.Int32),
            "lag": [None if number % 11 == 0 else number % 7 for number in range(count)],
            "log_end_offset": 1000,
            "committed_offset": [number * 31 % 1000 for number in range(count)],
        }
    ).with_columns(pl.col("log_end_offset").cast(pl.Int64))
    then = now.sample(fraction=0.7, seed=1, shuffle=True).with_columns(
        (pl.col("lag") * 3 % 5).alias("lag"), (pl.col("log_end_offset") - 10)
    )
    between = (NOON, NOON + timedelta(hours=2))
    found = growth_in_parts(
        lags_in_files(then, tmp_path, "then", 3),
        lags_in_files(now, tmp_path, "now", 2),
        between,
        PartRunner(str(tmp_path / "parts")),
    )
    assert len(found.parts) > 2
    assert found.order == FASTEST_FIRST
    wanted = lag_growth(then, now, *between)
    assert wanted.height > 100
    assert pl.DataFrame(pl.from_arrow(pa.concat_tables(found.pieces()))).equals(wanted)
