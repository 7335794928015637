"""The worst rows of a table in parts are those of the whole, whatever lies in which part."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import partial

import polars as pl
import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from analytics.tables.parted_table import Order, PartedTable
from reports.layout.section import (
    SHOWN,
    LongSection,
    Section,
    first_of_each,
    folded,
    scanned,
    worst_of_all,
)

SCHEMA = pa.schema([("place", pa.int64()), ("cost", pa.int64()), ("is_wrong", pa.bool_())])
IN_PLACE = Order(("place",), partial(pl.DataFrame.sort, by="place"))
PARTS = st.lists(
    st.lists(st.tuples(st.integers(0, 5), st.booleans()), max_size=12), min_size=1, max_size=5
)
"""Costs of rows, and whether they went wrong, part by part."""


def parted(parts: Sequence[Sequence[tuple[int, bool]]]) -> PartedTable:
    """Return rows, each in its place; places of parts are mixed."""
    tables = []
    for number, rows in enumerate(parts):
        of_part = [
            {"place": nth * len(parts) + number, "cost": cost, "is_wrong": is_wrong}
            for nth, (cost, is_wrong) in enumerate(rows)
        ]
        tables.append(pa.Table.from_pylist(of_part, SCHEMA))
    return PartedTable(SCHEMA, tables, IN_PLACE)


def section(rows: pa.Table) -> Section:
    return Section(rows, {"place": "PLACE"}, problem="is_wrong")


@given(PARTS, st.integers(1, 8), st.booleans())
def test_what_went_wrong_comes_first_in_the_order_of_the_table(
    parts: list[list[tuple[int, bool]]], most: int, only: bool
) -> None:
    table = parted(parts)
    rows = sorted(table.whole().to_pylist(), key=lambda row: (not row["is_wrong"], row["place"]))
    expected = [row for row in rows if row["is_wrong"] or not only][:most]
    worst = LongSection(table, section, only_problems=only).worst(most)
    assert worst.rows.to_pylist() == expected


@given(PARTS)
def test_all_that_went_wrong(parts: list[list[tuple[int, bool]]]) -> None:
    table = parted(parts)
    worst = LongSection(table, section, only_problems=True).worst(None)
    expected = [row for row in table.whole().to_pylist() if row["is_wrong"]]
    assert worst.rows.to_pylist() == expected


@given(PARTS)
def test_of_rows_that_are_equally_bad_the_first_come_first(
    parts: list[list[tuple[int, bool]]],
) -> None:
    table = parted(parts)
    rows = table.whole().to_pylist()
    worst = worst_of_all(table, [("cost", "descending")]).to_pylist()
    assert worst == sorted(rows, key=lambda row: -row["cost"])


@given(PARTS)
def test_a_scan_has_every_row_once(parts: list[list[tuple[int, bool]]]) -> None:
    table = parted(parts)
    places = [place for rows in scanned(table, ["place"]) for place in rows["place"].to_pylist()]
    assert sorted(places) == table.whole()["place"].to_pylist()


class FoldedOnce(PartedTable):
    """Rows that show how much memory a fold keeps of them."""

    def folded(
        self,
        fold: Callable[[Iterable[pa.Table]], pa.Table],
        columns: Sequence[str] | None = None,
    ) -> pa.Table:
        """Return what a fold keeps, of all rows at once."""
        kept = fold([self.whole() if columns is None else self.whole().select(list(columns))])
        assert kept.get_total_buffer_size() < self.whole().nbytes / 100
        return kept


def test_what_is_kept_of_a_part_holds_no_memory_of_its_other_rows() -> None:
    rows = parted([[(0, number % 2 == 0) for number in range(20_000)]])
    table = FoldedOnce(rows.schema, rows.parts, rows.order)
    worst = LongSection(table, section).worst(10)
    assert worst.rows["place"].to_pylist() == [number * 2 for number in range(10)]
    assert worst_of_all(table, [("cost", "descending")]).num_rows == SHOWN
    of_each = partial(first_of_each, of="is_wrong", most=3)
    assert folded(table, of_each, ["is_wrong", "place"]).num_rows == 6
