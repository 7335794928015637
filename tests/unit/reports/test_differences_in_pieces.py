"""Differences of any size are written as they are read, and as they would be all at once."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import pyarrow as pa
import pytest

from analytics.contracts import arrow_schema
from analytics.tables.parted_table import PartedTable
from reports.answers.diff import KINDS, render_difference
from reports.layout.output_format import OutputFormat

CHANGES = ("moved", "cannot_tell", "went_back", "appeared", "vanished", "moved", "went_back")


@dataclass(frozen=True)
class RowByRow:
    """A table that is read a row at a time, whatever is asked for."""

    rows: pa.Table

    @property
    def num_rows(self) -> int:
        return int(self.rows.num_rows)

    def pieces(self, columns: Sequence[str] | None = None) -> Iterator[pa.Table]:
        wanted = self.rows if columns is None else self.rows.select(list(columns))
        for start in range(self.num_rows + 1):
            yield wanted.slice(start, 1)

    def first(self, most: int) -> pa.Table:
        return self.rows.slice(0, most)

    def whole(self) -> pa.Table:
        return self.rows


def offsets() -> pa.Table:
    rows = [
        {"group_id": "g", "topic": "t", "partition": number, "change": change, "difference": number}
        for number, change in enumerate(CHANGES)
    ]
    return pa.Table.from_pylist(rows, schema=arrow_schema("changed_offsets"))


@pytest.mark.parametrize("top", [None, 3])
@pytest.mark.parametrize("name", ["text", "json", "csv", "markdown"])
def test_what_is_read_a_row_at_a_time_is_shown_as_the_whole_is(name: str, top: int | None) -> None:
    tables = {kind.contract: arrow_schema(kind.contract).empty_table() for kind in KINDS}
    tables["changed_offsets"] = offsets()
    texts = [
        "".join(
            render_difference(
                {each: read(rows) for each, rows in tables.items()},
                OutputFormat(name, top=top),
                {"input": ["dump"]},
            )
        )
        for read in (PartedTable.held, RowByRow)
    ]
    assert texts[0] == texts[1]


def test_what_is_gone_comes_first_and_then_what_cannot_be_told() -> None:
    tables = {kind.contract: arrow_schema(kind.contract).empty_table() for kind in KINDS}
    tables["changed_offsets"] = offsets()
    text = render_difference(
        {each: RowByRow(rows) for each, rows in tables.items()}, OutputFormat("csv"), {}
    )
    changes = [line.split(",")[3] for line in "".join(text).splitlines()[1:]]
    assert changes == [
        *("went_back", "vanished", "went_back", "cannot_tell", "moved", "appeared", "moved"),
    ]
