"""Rows that a few of their columns tell to be wanted: of tables of Arrow and of frames alike."""

from __future__ import annotations

import polars as pl
import pyarrow as pa
import pyarrow.compute as pc
import pytest

from analytics.replayed.group_rows import RowCondition

_ROWS = {"verdict": ["lost", None, "kept", "lost"], "offset": [1, 2, 3, 4]}


def _are_lost(rows: pa.Table) -> pa.ChunkedArray:
    assert rows.num_rows, "a mask is of rows that there are"
    return pc.fill_null(pc.equal(rows["verdict"], "lost"), fill_value=False)


_LOST = RowCondition(["verdict"], _are_lost)


def test_rows_that_are_wanted_stay_whole_and_in_their_order() -> None:
    assert _LOST.of(pa.table(_ROWS))["offset"].to_pylist() == [1, 4]
    assert _LOST.of_frame(pl.DataFrame(_ROWS))["offset"].to_list() == [1, 4]


@pytest.mark.parametrize("count", [0, 1, 2])
def test_rows_in_several_chunks_are_told_apart_as_in_one(count: int) -> None:
    pieces = [pl.DataFrame(_ROWS).slice(0, count), pl.DataFrame(_ROWS).slice(count)]

    found = _LOST.of_frame(pl.concat(pieces, rechunk=False))

    assert found["offset"].to_list() == [1, 4]


def test_where_there_are_no_rows_nothing_is_asked() -> None:
    nothing = pl.DataFrame(_ROWS).clear()

    assert _LOST.of_frame(nothing).equals(nothing)
    assert _LOST.of(pa.table(_ROWS).slice(0, 0)).num_rows == 0


def test_where_no_column_tells_rows_apart_all_are_wanted() -> None:
    """A rule without conditions is about every row."""
    every = RowCondition([], _are_lost)
    rows = pl.DataFrame(_ROWS)

    assert every.of_frame(rows).equals(rows)
    assert every.of(pa.table(_ROWS)).equals(pa.table(_ROWS))
