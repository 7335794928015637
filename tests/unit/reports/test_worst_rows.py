"""Text of more rows than a person reads shows the worst, and says how many there are."""

from __future__ import annotations

import pyarrow as pa
import pytest

from analytics.tables.parted_table import PartedTable
from reports.layout.output_format import OutputFormat
from reports.layout.section import MOST, SHOWN, summed_up, worst_rows

ORDER = [("rate", "descending")]
ROWS = pa.table({"rate": [None, *range(MOST)]})
MANY = PartedTable.held(ROWS)


def test_the_worst_come_first_and_what_is_not_known_comes_last() -> None:
    found = worst_rows(MANY, ORDER, OutputFormat("text"))["rate"].to_pylist()
    assert found == list(range(MOST - 1, MOST - 1 - SHOWN, -1))
    assert worst_rows(MANY, ORDER, "markdown").num_rows == SHOWN


def test_a_table_that_can_be_read_is_left_as_it_is() -> None:
    few = ROWS.slice(1)
    assert worst_rows(PartedTable.held(few), ORDER, OutputFormat("text")) is few


@pytest.mark.parametrize(
    "wanted",
    [
        OutputFormat("json"),
        OutputFormat("csv"),
        OutputFormat("text", sort="rate"),
        OutputFormat("text", only_problems=True),
    ],
    ids=("json", "csv", "sort", "only-problems"),
)
def test_who_says_which_rows_gets_them(wanted: OutputFormat) -> None:
    assert worst_rows(MANY, ORDER, wanted) is ROWS
    assert worst_rows(MANY, ORDER, OutputFormat("text", top=5)).equals(ROWS.slice(0, 5))


def test_what_is_left_out_is_said_with_how_to_get_it() -> None:
    assert summed_up({"epochs": (5, 5), "churn": (0, 0)}) == []
    lines = summed_up({"epochs": (100, 124000), "churn": (3, 3)})
    assert lines[0] == "the worst are shown: 100 of 124,000 epochs"
    assert lines[1].startswith("--top N shows more")
