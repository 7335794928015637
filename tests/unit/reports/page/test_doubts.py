"""Rows that the dump does not show whole carry a mark, in tables and below charts."""

from __future__ import annotations

import pyarrow as pa

from reports.page.model import Grid
from reports.page.rows import ABSENT, Shown, doubt_said, grid_of

COLUMNS = (Shown("group_id", "Group", "group"), Shown("lag", "Lag", "number"))


def rows(**whys: str | None) -> pa.Table:
    return pa.table(
        {
            "group_id": list(whys),
            "lag": [1] * len(whys),
            "complete": [why is None for why in whys.values()],
            "missing": pa.array(whys.values(), pa.string()),
        }
    )


def grid(table: pa.Table, top: int = 10) -> Grid:
    return grid_of("lag-table", "Lag", table, COLUMNS, top=top, source="evaluations/lag")


def test_a_row_that_is_not_whole_says_so_and_what_is_lacking() -> None:
    made = grid(rows(billing=None, router="broker 2's log"))
    assert made.heads == ("Group", "Lag", "Cannot tell")
    assert [row[-1].text for row in made.rows] == [ABSENT, "cannot tell: broker 2's log"]
    assert [row[-1].tone for row in made.rows] == ["", "warning"]


def test_where_all_rows_are_whole_there_is_no_column_of_marks() -> None:
    assert grid(rows(billing=None)).heads == ("Group", "Lag")
    assert grid(rows(billing=None, router="broker 2's log"), top=1).heads == ("Group", "Lag")
    assert grid(rows().slice(0, 0)).rows == ()


def test_a_table_that_says_no_reason_has_marks_all_the_same() -> None:
    made = grid(rows(router="broker 2's log").drop_columns(["missing"]))
    assert made.rows[0][-1].text == "cannot tell"


def test_a_number_of_what_is_missing_is_no_reason() -> None:
    table = rows(router=None).drop_columns(["missing", "complete"])
    table = table.append_column("complete", [[False]]).append_column("missing", [[3]])
    assert grid(table).rows[0][-1].text == "cannot tell"
    said = table.append_column("incomplete_because", [["broker 2's log"]])
    assert grid(said).rows[0][-1].text == "cannot tell: broker 2's log"
    assert doubt_said(said).endswith("so: broker 2's log.")


def test_a_row_of_what_is_gone_has_no_mark() -> None:
    gone = rows(a=None, b=None).drop_columns(["complete"])
    some = gone.append_column("complete", [[False, None]])
    assert [row[-1].text for row in grid(some).rows] == ["cannot tell", ABSENT]
    none = gone.append_column("complete", [pa.nulls(2, pa.bool_())])
    assert grid(none).heads == ("Group", "Lag")
    assert doubt_said(none) == ""


def test_a_table_without_marks_of_its_own_gets_none() -> None:
    plain = rows(router="broker 2's log").drop_columns(["missing", "complete"])
    assert grid(plain).heads == ("Group", "Lag")
    assert doubt_said(plain) == ""


def test_a_name_in_a_mark_does_no_harm() -> None:
    (row,) = grid(rows(router="a\x1b[31mred")).rows
    assert "\x1b" not in row[-1].text


def test_a_long_reason_is_cut_and_kept_whole_beside() -> None:
    (row,) = grid(rows(router="x " * 200)).rows
    assert len(row[-1].text) <= 160
    assert len(row[-1].whole) > 400


def test_what_is_said_below_a_chart_counts_the_rows() -> None:
    table = rows(a=None, b="broker 2's log", c="broker 3's log")
    assert doubt_said(table) == " Cannot tell whether 2 of 3 rows are so: broker 2's log."
    assert doubt_said(table.slice(0, 1)) == ""
