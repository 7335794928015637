"""Text of more rows than a person reads shows the worst, and says how many there are."""

from __future__ import annotations

from datetime import UTC, datetime

import pyarrow as pa
import pytest

from analytics.contracts import arrow_schema
from analytics.questions.share.question import ORDERS, SHARE
from analytics.tables.parted_table import PartedTable
from reports.answers.share import share_text
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


def test_share_of_many_partitions_shows_the_worst_and_says_what_all_words_mean() -> None:
    """Those that went wrong come first, with their remark, however many go before them."""
    rows = [
        {
            "group_id": f"g{number:04}",
            "topic": "orders",
            "partition": 0,
            "status": "behind",
            "complete": True,
            "records_left": 2 * MOST - number,
        }
        for number in range(MOST)
    ]
    orphan = {**rows[0], "group_id": "z", "lag": 5, "status": "orphan", "reason": "nobody owns it"}
    schema = arrow_schema("share_backlog")
    parts = [pa.Table.from_pylist(some, schema) for some in ([orphan, *rows[1::2]], rows[::2])]
    tables = {
        name: PartedTable.of_contract(name, parts if name == "share_backlog" else [])
        for name in SHARE.tables
    }
    tables["share_backlog"] = PartedTable.of_contract(
        "share_backlog", parts, ORDERS["share_backlog"]
    )
    metadata = {
        "statuses": {"orphan": "it is nobody's", "behind": "it has some left", "idle": "it waits"},
        "settings": [],
        **{name: {} for name in ("fault_words", "step_verdicts", "limit_verdicts")},
    }
    figures = {"as_of": datetime(2026, 1, 1, tzinfo=UTC), "no_end": "the log's end"}
    text = share_text(
        tables, figures, OutputFormat("text"), metadata, by="partition", with_history=False
    )
    lines = "".join(text).splitlines()
    assert lines[0].split()[-1] == "REASON"
    assert "nobody owns it" in lines[1]
    assert [line.split()[0] for line in lines[2 : SHOWN + 1]] == [
        f"g{number:04}" for number in range(SHOWN - 1)
    ]
    assert f"({MOST + 1 - SHOWN:,} more rows not shown)" in lines
    assert lines[-2:] == ["orphan: it is nobody's", "behind: it has some left"]
