"""The lag of readers of committed records, beside Kafka's number."""

from __future__ import annotations

import polars as pl
import pyarrow as pa

from analytics.questions.lag.offsets import HELD_BACK, WHY_HELD_BACK, with_stable_lags
from analytics.replayed.data_logs import STABLE

ROWS = pa.schema(
    [("topic", pa.string()), ("partition", pa.int32()), ("log_end_offset", pa.int64())]
)


def lags(*rows: tuple[int, int | None, int | None]) -> list[tuple[int | None, int | None]]:
    """Partition, end and lag; of partitions 0 and 1 the log ends at 100, committed ones at 60."""
    names = ("partition", "log_end_offset", "lag")
    told = pa.Table.from_pylist(
        [{"topic": "t", **dict(zip(names, row, strict=True))} for row in rows],
        ROWS.append(pa.field("lag", pa.int64())),
    )
    ends = [("t", 1, 100, 60), ("t", 0, 100, 60), ("t", 2, 100, None)]
    stable = pa.Table.from_pylist(
        [dict(zip(STABLE.names, each, strict=True)) for each in ends], STABLE
    )
    found = with_stable_lags(pl.DataFrame(told), pl.DataFrame(stable))
    columns = (found[name].to_list() for name in ("last_stable_offset", "lag_read_committed"))
    return list(zip(*columns, strict=True))


def test_what_lies_behind_the_first_open_transaction_is_not_counted() -> None:
    assert lags((1, 100, 50), (0, 100, 40), (0, 100, 10)) == [(60, 10), (60, 0), (60, -30)]


def test_without_a_lag_the_offset_is_told_alone() -> None:
    assert lags((0, 100, None)) == [(60, None)]


def test_of_another_end_and_where_nothing_is_known_nothing_is_told() -> None:
    assert lags((0, 101, 50), (0, None, None), (2, 100, 5), (3, 7, 1)) == [(None, None)] * 4


def test_a_group_that_has_nothing_but_an_open_transaction_before_it_may_be_held_back() -> None:
    told = pl.DataFrame(
        {"lag": [40, 40, 0, None, 40], "lag_read_committed": [0, 10, 0, None, None]}
    )
    assert told.select(WHY_HELD_BACK).to_series().to_list() == [HELD_BACK, None, None, None, None]
