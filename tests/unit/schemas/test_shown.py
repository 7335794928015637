"""What people are shown of tables: heads are in the contracts, and each of them once."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterator
from importlib.resources import files
from typing import Any

import pytest

import schemas
from schemas import SchemaError, Table
from schemas.catalog import parse_table
from schemas.reading import documents
from schemas.shown import MAIN, PAGE, head_of, head_on_page

FOR_PROGRAMS = {
    *("audit_incident_parts", "audit_incidents", "audited_group_counts"),
    *("finding_changes", "gaps", "log_end_samples", "region_checkpoint_offsets"),
}
"""Tables of answers that have no heads."""
UNIT_OF_ENDING = {
    "_ms": "ms",
    "_minutes": "minutes",
    "_bytes": "bytes",
    "_offset": "offset",
    "_records": "records",
    "_share": "share",
    "_ratio": "share",
}
TABLES = [name for name, _, _ in documents("tables")]


def table_of(**more: Any) -> Table:
    columns = [
        {"name": "group_id", "type": "string", "about": "The group."},
        {"name": "lag_ms", "type": "bigint", "about": "How far.", "unit": "ms", "rank": 2},
        {"name": "lag_bound", "type": "string", "about": "How sure."},
    ]
    document = {"kind": "evaluation", "about": "Lags.", "columns": columns, **more}
    return parse_table(document, name="lags", file="lags.json")


def given_heads() -> Iterator[tuple[str, str, str, str]]:
    """Yield table, column, the head that its file gives, and the one it would have without."""
    for name, _, document in documents("tables"):
        assert isinstance(document, dict)
        own = {each["name"]: each["head"] for each in document["columns"] if "head" in each}
        for column, head in own.items():
            yield name, column, head, head_of(column)
        for view, shown in {MAIN: document.get("shown", []), **document.get("views", {})}.items():
            for each in shown:
                if isinstance(each, dict) and "head" in each:
                    column = each["name"]
                    on_page = view.startswith(PAGE)
                    without = head_on_page(column) if on_page else own.get(column, head_of(column))
                    yield name, column, each["head"], without


def test_heads_order_and_what_is_left_out_first_are_those_of_the_contract() -> None:
    shown = ["lag_bound", "lag_ms", {"name": "lag", "from": ["lag_ms", "lag_bound"], "rank": 3}]
    view = table_of(shown=shown).view()
    assert dict(view.heads) == {"lag_bound": "LAG-BOUND", "lag_ms": "LAG-MS", "lag": "LAG"}
    assert list(view.heads) == ["lag_bound", "lag_ms", "lag"]
    assert view.spare == ("lag", "lag_ms")
    assert [each.name for each in view.derived] == ["lag"]


def test_a_view_may_call_and_rank_a_column_otherwise() -> None:
    renamed = {"name": "lag_ms", "head": "BEHIND", "rank": 1}
    table = table_of(shown=["group_id", "lag_ms"], views={"short": [renamed]})
    assert dict(table.view().heads) == {"group_id": "GROUP", "lag_ms": "LAG-MS"}
    assert dict(table.view("short").heads) == {"lag_ms": "BEHIND"}
    assert table.view("short").spare == ()


def test_there_is_no_view_but_those_of_the_contract() -> None:
    with pytest.raises(KeyError, match="no view 'long'"):
        table_of(shown=["group_id"]).view("long")


@pytest.mark.parametrize(
    ("columns", "why"),
    [
        (["group"], 'shows "group", which is no column'),
        ([{"name": "lag", "from": ["lag_s"]}], 'shows "lag_s", which is no column'),
        ([{"name": "lag_ms", "from": ["lag_bound"]}], "is derived, and a column of the table"),
        (["lag_ms", "lag_ms"], "shown column"),
        (["lag_ms", {"name": "group_id", "rank": 2}], "have the same rank"),
        ([{"name": "group_id", "head": "The group"}], "a head has capitals and no blanks"),
        ([{"name": "group_id", "rank": 0}], "a rank is 1 or larger"),
        ([{"name": "lag", "from": ["lag_ms"], "as": "hours"}], "a form is one of"),
        ([{"name": "group_id", "heads": "GROUP"}], "unknown field .heads"),
    ],
)
def test_a_view_that_could_not_be_shown_is_refused(columns: list[Any], why: str) -> None:
    with pytest.raises(SchemaError, match=why):
        table_of(shown=columns)


def test_a_page_has_words_for_heads_and_cells_as_types_and_units_have_them() -> None:
    renamed = {"name": "lag_bound", "head": "How sure", "as": "word"}
    view = table_of(views={"page": ["group_id", "lag_ms", renamed]}).view("page")
    assert dict(view.heads) == {"group_id": "Group id", "lag_ms": "Lag ms", "lag_bound": "How sure"}
    assert [each.form for each in view.columns] == ["group", "duration", "word"]
    assert view.spare == ()


def test_a_cell_of_a_page_has_a_form_that_pages_know() -> None:
    with pytest.raises(SchemaError, match="a form is one of amount, bytes, decimal"):
        table_of(views={"page": [{"name": "lag_ms", "as": "percent"}]})


def test_a_cell_of_a_page_that_a_report_makes_has_no_type_and_names_its_form() -> None:
    made = {"name": "lag", "from": ["lag_ms", "lag_bound"], "head": "Lag"}
    with pytest.raises(SchemaError, match="a form is one of"):
        table_of(views={"page": [made]})
    assert table_of(views={"page": [{**made, "as": "amount"}]}).view("page").columns[0].sources


@pytest.mark.parametrize("unit", ["seconds", "MS"])
def test_an_unknown_unit_is_refused(unit: str) -> None:
    column = {"name": "lag", "type": "bigint", "about": "How far.", "unit": unit}
    with pytest.raises(SchemaError, match=f'has unit "{unit}"'):
        table_of(columns=[column])


def test_a_text_has_no_unit() -> None:
    column = {"name": "lag", "type": "string", "about": "How far.", "unit": "ms"}
    with pytest.raises(SchemaError, match="has unit"):
        table_of(columns=[column])


def test_every_table_of_an_answer_has_heads_but_those_for_programs() -> None:
    answers = [each for each in schemas.tables().values() if each.kind == "evaluation"]
    assert {each.name for each in answers if not each.views} == FOR_PROGRAMS


def test_a_head_is_written_once() -> None:
    """What is given beside a column is another head than that of all columns of its name."""
    repeated = [(table, name) for table, name, head, without in given_heads() if head == without]
    assert repeated == []


def test_general_heads_are_of_columns_of_several_tables_and_no_others() -> None:
    general = json.loads(files(schemas).joinpath("rules/heads.json").read_text("utf-8"))["heads"]
    tables = defaultdict(set)
    for table in schemas.tables().values():
        for view in table.views:
            for name, head in view.heads.items():
                if head == general.get(name):
                    tables[name].add(table.name)
    assert {name for name in general if len(tables[name]) < 2} == set()
    assert [name for name, head in general.items() if head == name.upper().replace("_", "-")] == []
    assert list(general) == sorted(general)


def test_what_is_derived_from_another_table_is_derived_from_a_column_of_it() -> None:
    sources = {
        source
        for table in schemas.tables().values()
        for view in table.views
        for each in view.derived
        for source in each.sources
        if "." in source
    }
    assert "topic_readers.how" in sources
    for each in sources:
        table, column = each.split(".")
        assert schemas.table(table).column(column).name == column


@pytest.mark.parametrize("name", TABLES)
def test_numbers_have_the_unit_that_their_names_say(name: str) -> None:
    for column in schemas.catalog.written_tables()[name].columns:
        if column.type not in ("int", "bigint", "double"):
            continue
        expected = [unit for end, unit in UNIT_OF_ENDING.items() if column.name.endswith(end)]
        if expected:
            assert column.unit == expected[0], column.name
