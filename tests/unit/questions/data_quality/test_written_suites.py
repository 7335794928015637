"""Each written expectation fails on rows made to break it, and not on their sound neighbours.

The rows are `tests/cases/expectations.json`; what is wrong in them is off by one, at 2^62 where the
column is of 64 bits: as floats they would be equal.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from datetime import datetime
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from analytics.contracts import ARROW_TYPES
from analytics.questions.data_quality.great_expectations_engine import Engine
from analytics.questions.data_quality.judged_table import StoredTable, judged_tables
from schemas import table, tables
from schemas.expectation_suites import Expectation, expected_by_contract, written_suites

CASES = json.loads((Path(__file__).parents[3] / "cases" / "expectations.json").read_text())
WRITTEN = [each for suite in written_suites().values() for each in suite]
ENGINE = Engine()


def rows_of(name: str, rows: Sequence[dict[str, Any]], columns: Sequence[str]) -> pa.Table:
    """Rows of a table, as far as these columns; what a row does not say is null."""
    schema = pa.schema([(each, ARROW_TYPES[table(name).column(each).type]) for each in columns])
    told = [
        {each: value_of(row.get(each), schema.field(each).type) for each in columns} for row in rows
    ]
    return pa.Table.from_pylist(told, schema)


def value_of(value: Any, type_: pa.DataType) -> Any:
    return datetime.fromisoformat(value) if value and pa.types.is_timestamp(type_) else value


def judged(
    expected: Expectation, rows: list[dict[str, Any]], others: dict[str, list[dict[str, Any]]]
) -> dict[str, Any]:
    name = expected.table

    def other(of: str, columns: Sequence[str]) -> list[pa.Table]:
        return [rows_of(of, others.get(of, []), columns)]

    held = rows_of(name, rows, expected.columns)
    stored = StoredTable(name, held.schema, held, table(name).key, held.num_rows)
    (row,) = judged_tables([(stored, [expected])], other, ENGINE)
    return row


def test_every_written_expectation_has_a_case() -> None:
    named = {(name, each) for name, cases in CASES.items() for each in cases}
    assert named == {(each.table, each.name) for each in WRITTEN}
    assert len(named) == len(WRITTEN)


@pytest.mark.parametrize("expected", WRITTEN, ids=lambda each: f"{each.table}: {each.name}")
def test_it_fails_on_what_is_wrong_and_passes_on_what_is_not(expected: Expectation) -> None:
    case = CASES[expected.table][expected.name]
    broken = judged(expected, case["broken"], {})
    assert (broken["outcome"], broken["unexpected_count"]) == ("failed", 1), broken
    assert broken["example"] is not None
    sound = judged(expected, case["sound"], case.get("others", {}))
    assert (sound["outcome"], sound["unexpected_count"], sound["example"]) == ("passed", 0, None)
    assert broken["severity"] in {"critical", "warning", "info"}
    assert broken["reason"] == expected.about != ""


def test_suites_name_tables_and_columns_that_there_are() -> None:
    for each in WRITTEN:
        known = {column.name for column in tables()[each.table].columns}
        assert set(each.columns) <= known, each
        if "table" in each.kwargs:
            other = {column.name for column in tables()[each.kwargs["table"]].columns}
            assert set(each.kwargs.get("other_columns", each.kwargs["columns"])) <= other


@pytest.mark.parametrize("name", sorted(tables()))
def test_what_a_contract_says_of_a_table_is_expected(name: str) -> None:
    contract = table(name)
    types, *others = expected_by_contract(contract)
    assert list(types.kwargs["types"]) == [each.name for each in contract.columns]
    assert others[-1].kwargs["columns"] == list(contract.key)
    assert [each.columns[0] for each in others[:-1]] == [
        each.name for each in contract.columns if not each.nullable
    ]
