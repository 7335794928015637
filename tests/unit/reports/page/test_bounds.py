"""A value that is only bounded carries the sign of its bound, wherever a page shows it."""

from __future__ import annotations

import re
from datetime import timedelta

import pyarrow as pa
import pytest

from reports.page.build import page_of
from reports.page.forms import html_of
from reports.page.rows import Shown, columns_of, grid_of, text_of
from schemas import tables
from schemas.model import Table
from schemas.shown import PAGE, SIGNS_OF_BOUNDS, signs_of
from tests.support.page_tables import AT, finding, rows_of, workspace

BOUND_NAMES = re.compile(r".*_bound|not_before|elected_after")
CONTRACTS = {each.name: each for each in tables().values()}
SHOWN = [
    (each.name, view.name, column.name)
    for each in CONTRACTS.values()
    for view in each.views
    if view.name.startswith(PAGE)
    for column in view.columns
    if column.bound is not None
]
VALUES = {"time": AT, "number": 7, "decimal": 7.5, "duration": 456_000}


def test_every_column_that_bounds_another_is_named_by_it() -> None:
    for contract in CONTRACTS.values():
        bounds = {each.name for each in contract.columns if BOUND_NAMES.fullmatch(each.name)}
        named = {each.bound for each in contract.columns} - {None}
        assert bounds <= named, contract.name


def test_pages_show_bounded_values() -> None:
    assert ("lag", "page", "time_lag_ms") in SHOWN
    assert ("audited_groups", "page", "time_lag_ms") in SHOWN
    assert ("share_backlog", "page", "stalled_since") in SHOWN


def bounds_of(contract: Table, column: Shown) -> list[tuple[object, str]]:
    """Values of the column that says whether another is exact, and the sign that belongs there."""
    assert column.bound is not None
    bound = contract.column(column.bound)
    if bound.type == "boolean":
        return [(True, "<= "), (False, "")]
    if bound.type == "timestamp":
        return [(AT - timedelta(minutes=1), "<= "), (None, "")]
    assert bound.closed is not None
    signs = signs_of(column.kind)
    return [(word, signs.get(word, "")) for word in bound.closed.values]


@pytest.mark.parametrize(("of", "view", "name"), SHOWN)
def test_a_page_shows_the_sign(of: str, view: str, name: str) -> None:
    contract = CONTRACTS[of]
    (column,) = (each for each in columns_of(of, view) if each.name == name)
    assert column.bound is not None
    expected = bounds_of(contract, column)
    assert any(sign for _, sign in expected)
    kind = "time" if contract.column(name).type == "timestamp" else column.kind
    value = VALUES[kind]
    rows = rows_of(of, [{name: value, column.bound: bound} for bound, _ in expected])
    grid = grid_of("a", "a", rows, (column,), top=99, source="a")
    plain = grid_of("a", "a", rows, (Shown(name, name, column.kind),), top=99, source="a")
    exact = [row[0].text for row in plain.rows]
    assert [row[0].text for row in grid.rows] == [
        f"{sign}{text}" for (_, sign), text in zip(expected, exact, strict=True)
    ]


def test_every_word_of_a_bound_has_a_sign_or_is_known_to_have_none() -> None:
    without = {"exact", "unknown", "never", "nothing"}
    for contract in CONTRACTS.values():
        for column in contract.columns:
            bound = column.bound and contract.column(column.bound)
            if bound and bound.closed is not None:
                assert set(bound.closed.values) <= without | SIGNS_OF_BOUNDS.keys()


def test_since_a_time_at_the_latest_it_is_at_least_so_long() -> None:
    row = {"since": AT, "long": 60_000, "bound": "at_latest"}
    assert text_of(row, Shown("since", "Since", "time", bound="bound")).startswith("<= 2026")
    assert text_of(row, Shown("long", "Long", "duration", bound="bound")) == ">= 1 min"


def test_what_never_comes_says_so_and_what_is_not_known_has_no_sign() -> None:
    drain = Shown("drain_ms", "Drained in", "duration", bound="drain_bound")
    assert text_of({"drain_ms": None, "drain_bound": "never"}, drain) == "never"
    assert text_of({"drain_ms": None, "drain_bound": "unknown"}, drain) == "-"


def test_a_table_without_the_column_that_bounds_is_refused() -> None:
    column = Shown("lag", "Lag", "number", bound="log_end_bound")
    with pytest.raises(KeyError):
        grid_of("a", "a", pa.table({"lag": [1]}), (column,), top=9, source="a")


def test_the_whole_page_has_the_sign_wherever_it_has_the_value() -> None:
    lag = {
        "group_id": "billing",
        "topic": "orders",
        "partition": 0,
        "kind": "owned",
        "lag": 9,
        "time_lag_ms": 456_000,
        "time_lag_bound": "at_least",
        "verdict": "behind",
    }
    html = html_of(page_of(workspace(["billing"], [finding("billing")], {"lag": [lag]})))
    places = re.findall(r"(.{7})7 min 36 s", html)
    assert len(places) >= 4, "in the groups, in their story, in the table of lag and its chart"
    assert {each for each in places if not re.search(r"(&gt;|>)=.?.?$", each)} == set()
