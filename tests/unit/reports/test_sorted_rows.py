"""Rows of any size in an order of one's own are those of a table that is sorted as a whole."""

from __future__ import annotations

import json

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from hypothesis import strategies as st

from analytics.tables.parted_table import PartedTable
from reports import row_formats
from reports.layout.output_format import OutputFormat
from reports.layout.section import MOST, SHOWN, LongSection, Section
from reports.row_formats import SortedRows, render
from tests.support.examples import examples

SCHEMA = pa.schema([("group_id", pa.string()), ("lag", pa.int64()), ("nth", pa.int64())])
VALUES = st.tuples(
    st.sampled_from([None, "a", "b", "ä", ""]), st.none() | st.integers(min_value=-2, max_value=2)
)


def sorted_as_a_whole(rows: pa.Table, order: list[tuple[str, str]]) -> pa.Table:
    return rows.take(pc.sort_indices(rows, [*order, ("nth", "ascending")]))


@examples(
    20,
    100,
    lots=st.lists(st.lists(VALUES, max_size=9), min_size=1, max_size=9),
    way=st.sampled_from(["ascending", "descending"]),
    columns=st.sampled_from([["lag"], ["group_id"], ["group_id", "lag"]]),
    most=st.integers(min_value=1, max_value=7),
)
def test_runs_that_are_merged_are_the_table_in_order(
    lots: list[list[tuple[str | None, int | None]]], way: str, columns: list[str], most: int
) -> None:
    with pytest.MonkeyPatch.context() as patch:
        for name in ("_IN_A_RUN", "_HELD_AT_ONCE", "_FEWEST"):
            patch.setattr(row_formats, name, most if name == "_IN_A_RUN" else 2)
        count, pieces = 0, []
        for lot in lots:
            rows = [
                {"group_id": group, "lag": lag, "nth": count + place}
                for place, (group, lag) in enumerate(lot)
            ]
            count += len(rows)
            pieces.append(pa.Table.from_pylist(rows, schema=SCHEMA))
        whole = pa.concat_tables(pieces)
        order = [(each, way) for each in columns]
        wanted = sorted_as_a_whole(whole, order)
        found = SortedRows(lambda: pieces, order)
        assert found.whole().to_pylist() == wanted.to_pylist()
        assert found.first(3).to_pylist() == wanted.slice(0, 3).to_pylist()
        assert found.num_rows == wanted.num_rows


def section_of(rows: pa.Table) -> Section:
    marked = rows.append_column("is_high", pc.greater(rows["lag"], MOST))
    heads = {"group_id": "GROUP", "lag": "LAG", "nth": "NTH"}
    return Section(marked, heads, name="groups", problem="is_high")


COUNT = 2 * MOST
MANY = pa.table(
    {
        "group_id": [f"g{number % 7}" for number in range(COUNT)],
        "lag": pa.array([number * 7919 % COUNT for number in range(COUNT)], pa.int64()),
        "nth": pa.array(range(COUNT), pa.int64()),
    }
)
PARTS = PartedTable.held(MANY)


@pytest.mark.parametrize("top", [None, 5])
@pytest.mark.parametrize("only_problems", [False, True])
@pytest.mark.parametrize("column", ["lag", "-lag", "group_id"])
@pytest.mark.parametrize("name", ["json", "csv"])
def test_a_table_that_is_not_held_is_sorted_as_one_that_is(
    monkeypatch: pytest.MonkeyPatch, name: str, column: str, only_problems: bool, top: int | None
) -> None:
    monkeypatch.setattr(row_formats, "_IN_A_RUN", 300)
    wanted = OutputFormat(name, sort=column, only_problems=only_problems, top=top)
    held = render([section_of(MANY)], wanted, {})
    assert render([LongSection(PARTS, section_of)], wanted, {}) == held


def test_people_are_shown_the_first_in_their_order_and_how_many_there_are_more() -> None:
    wanted = OutputFormat("text", sort="-lag")
    lines = render([LongSection(PARTS, section_of)], wanted, {}).splitlines()
    assert [int(line.split()[1]) for line in lines[1 : SHOWN + 1]] == list(range(SHOWN))
    assert lines[-1] == f"({COUNT - SHOWN:,} more rows not shown)"


def test_a_table_without_the_column_is_as_it_is() -> None:
    other = LongSection(PARTS, lambda rows: Section(rows, {"nth": "NTH"}, name="others", key="o"))
    wanted = OutputFormat("json", sort="lag")
    found = json.loads(render([LongSection(PARTS, section_of), other], wanted, {}))
    assert [row["nth"] for row in found["o"]] == list(range(COUNT))
    assert [row["lag"] for row in found["rows"]] == list(range(COUNT - 1, -1, -1))
