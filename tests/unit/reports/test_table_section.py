"""Sections have their heads from contracts, and nowhere else."""

from __future__ import annotations

import ast
import re
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import reports
import schemas
from reports.layout.section import (
    ROWS,
    as_main,
    heads_of,
    table_section,
    unmarked,
    with_derived,
    without,
)

HEAD = re.compile(r"[A-Z0-9#/'-]*[A-Z][A-Z0-9#/'-]*")
KAFKAS = "describe"
"""The package with the heads of Kafka's own tools, which compares theirs with ours."""
SOURCES = sorted(Path(reports.__file__).parent.rglob("*.py"))


def heads_in(source: str) -> list[str]:
    """Return the columns to which a source gives heads: a dictionary, or a column of a page."""
    tree = list(ast.walk(ast.parse(source)))
    return [*_of_dictionaries(tree), *_of_pages(tree)]


def _of_pages(tree: list[ast.AST]) -> list[str]:
    return [
        node.args[0].value
        for node in tree
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name)
        if node.func.id == "Shown" and len(node.args) > 1
        if isinstance(node.args[0], ast.Constant) and isinstance(node.args[1], ast.Constant)
        if isinstance(node.args[0].value, str)
    ]


def _of_dictionaries(tree: list[ast.AST]) -> list[str]:
    return [
        key.value
        for node in tree
        if isinstance(node, ast.Dict)
        for key, value in zip(node.keys, node.values, strict=True)
        if isinstance(key, ast.Constant) and isinstance(value, ast.Constant)
        if isinstance(key.value, str) and isinstance(value.value, str)
        if re.fullmatch("[a-z][a-z_]*", key.value) and HEAD.fullmatch(value.value)
    ]


def test_no_report_has_heads_of_its_own() -> None:
    ours = [each for each in SOURCES if each.parent.name != KAFKAS]
    assert len(ours) > 40
    own = {each.name: heads_in(each.read_text("utf-8")) for each in ours}
    assert {name: heads for name, heads in own.items() if heads} == {}


def test_a_dictionary_of_heads_would_be_seen() -> None:
    assert heads_in('X = {"group_id": "GROUP", "n": "#MEMBERS"}') == ["group_id", "n"]
    assert heads_in('X = {**Y, "per_day": "BYTES/DAY"}') == ["per_day"]
    assert heads_in('X = (Shown("lag", "Lag", "number"), Shown("at", head_on_page("at")))') == [
        "lag"
    ]
    assert heads_in('X = {"ms": "milliseconds", "AVAILABLE": "ORANGE"}') == []


def rows_of(**columns: list[Any]) -> pa.Table:
    return pa.table(columns)


@pytest.mark.parametrize(
    ("length", "bound", "text"),
    [
        (7_500_000, "exact", "2 h 5 min"),
        (7_500_000, "at_least", ">= 2 h 5 min"),
        (7_500_000, "estimated", "~ 2 h 5 min"),
        (7_500_000, "at_most", "<= 2 h 5 min"),
        (None, "never", "never"),
        (None, "unknown", None),
        (-1, "exact", "due"),
    ],
)
def test_time_left_is_a_length_with_the_sign_of_its_bound(
    length: int | None, bound: str, text: str | None
) -> None:
    rows = pa.table({"loss_in_ms": pa.array([length], pa.int64()), "loss_in_bound": [bound]})
    rows = rows.append_column("time_lag", pa.array([None], pa.string()))
    rows = rows.append_column("drain", pa.array([None], pa.string()))
    made = with_derived(rows, schemas.table("lag").view())
    assert made["loss_in"].to_pylist() == [text]
    assert made["drain"].to_pylist() == [None], "what is there is not made anew"


def test_a_share_is_percent() -> None:
    rows = rows_of(share=[0.256, None])
    made = with_derived(rows, schemas.table("size_limits").view())
    assert made["percent"].to_pylist() == ["26 %", None]


def test_a_share_is_a_text_where_no_row_of_a_piece_has_one() -> None:
    rows = pa.table({"share": pa.array([None], pa.float64())})
    made = with_derived(rows, schemas.table("size_limits").view())
    assert made.schema.field("percent").type == pa.string()


def test_a_section_has_heads_names_and_spare_columns_of_its_contract() -> None:
    names = [each.name for each in schemas.table("usage_growth").columns]
    rows = pa.table({name: pa.array([], pa.string()) for name in [*names, "is_problem"]})
    found = table_section(rows, "usage_growth", problem="is_problem")
    assert found.heads == heads_of("usage_growth")
    assert found.names == [*found.heads, *(each for each in names if each not in found.heads)]
    assert (found.name, found.key) == ("usage_growth", "usage_growth")


def test_a_table_that_says_what_is_complete_is_marked_unless_its_words_say_so() -> None:
    names = [each.name for each in schemas.table("topic_readers").columns]
    rows = pa.table({name: pa.array([], pa.string()) for name in names})
    found = table_section(rows, "topic_readers")
    assert found.is_marked
    assert not unmarked(found).is_marked
    assert (as_main(found).key, as_main(found).is_marked) == (ROWS, False)


def test_what_is_not_shown_this_time_has_no_head() -> None:
    rows = pa.table({name: pa.array([], pa.string()) for name in heads_of("lag_growth")})
    found = table_section(rows, "lag_growth", also=())
    assert [*without(found, ["lag"]).heads] == [each for each in found.heads if each != "lag"]


def test_a_table_that_has_no_view_is_an_error() -> None:
    with pytest.raises(KeyError, match="no view"):
        table_section(rows_of(code=["x"]), "gaps")
