"""The first rows of a table in an order, whatever pieces it is read in."""

from __future__ import annotations

from typing import Any

import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from reports.layout.section import first_in_order, first_of_each
from reports.page.workspace_tables import HeldTables, WorkspaceTables

SCHEMA = pa.schema([("topic", pa.string()), ("lag", pa.int64()), ("share", pa.float64())])
ROW = st.tuples(
    st.sampled_from("abc"),
    st.none() | st.integers(-3, 3),
    st.none() | st.sampled_from([0.5, 1.0, float("nan")]),
)
PIECES = st.lists(st.lists(ROW, max_size=8), min_size=1, max_size=5)
ORDERS = [
    (("lag", "descending"), ("topic", "ascending")),
    (("lag", "ascending"), ("topic", "descending")),
    (("share", "descending"), ("topic", "ascending")),
    (("share", "ascending"), ("lag", "descending")),
    (("topic", "ascending"), ("lag", "ascending")),
]


def table(rows: list[tuple[Any, ...]]) -> pa.Table:
    return pa.Table.from_pylist([dict(zip(SCHEMA.names, row, strict=True)) for row in rows], SCHEMA)


def said(rows: pa.Table) -> list[str]:
    """Return rows as text: what is not a number equals nothing."""
    return [repr(row) for row in rows.to_pylist()]


@pytest.mark.parametrize("order", ORDERS)
@given(PIECES, st.integers(1, 6))
def test_the_first_rows_are_those_of_all_pieces(
    order: Any, pieces: list[list[tuple[Any, ...]]], most: int
) -> None:
    tables = list(map(table, pieces))
    whole = pa.concat_tables(tables).sort_by(list(order))
    assert said(first_in_order(tables, order, most)) == said(whole.slice(0, most))


@given(PIECES, st.integers(1, 3))
def test_the_first_rows_of_each_value_are_those_of_all_pieces(
    pieces: list[list[tuple[Any, ...]]], most: int
) -> None:
    tables = list(map(table, pieces))
    order = [("lag", "descending"), ("topic", "ascending")]
    whole = pa.concat_tables(tables).sort_by(order)
    found = first_of_each(tables, "topic", most, order)
    for topic in "abc":
        is_its = pl.col("topic") == topic
        first = pl.DataFrame(pl.from_arrow(found)).filter(is_its)
        wanted = pl.DataFrame(pl.from_arrow(whole)).filter(is_its).head(most)
        assert repr(first.rows()) == repr(wanted.rows())


@pytest.mark.parametrize("order", ORDERS)
@given(st.lists(ROW, max_size=12), st.integers(1, 6))
def test_the_largest_rows_of_a_page_are_those_of_the_sorted_table(
    order: Any, rows: list[tuple[Any, ...]], most: int
) -> None:
    read = WorkspaceTables(HeldTables({"lag": table(rows)}), {}, {})  # type: ignore[typeddict-item]
    whole = table(rows).sort_by(list(order))
    assert said(read.largest("lag", order, most, SCHEMA.names)) == said(whole.slice(0, most))
    is_behind = pl.col("lag") > 0
    behind = pl.DataFrame(pl.from_arrow(whole)).filter(is_behind).to_arrow().cast(SCHEMA)
    found = read.largest("lag", order, most, SCHEMA.names, is_behind)
    assert said(found) == said(behind.slice(0, most))
