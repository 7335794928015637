"""Lag as text: durations with their signs, and tables that have no rows."""

from __future__ import annotations

import pyarrow as pa
import pytest

from analytics.contracts import arrow_schema
from reports.answers.lag import lag_section, moves_section
from reports.row_formats import render
from schemas import table

_TYPES = {"bigint": pa.int64(), "int": pa.int32(), "double": pa.float64(), "boolean": pa.bool_()}


@pytest.mark.parametrize(
    ("length", "bound", "text"),
    [
        (300_000, "exact", "5 min"),
        (300_000, "at_least", ">= 5 min"),
        (300_000, "at_most", "<= 5 min"),
        (300_000, "estimated", "~ 5 min"),
        (-1, "exact", "due"),
        (None, "never", "never"),
        (None, "unknown", "-"),
    ],
)
def test_a_duration_has_the_sign_of_its_bound(length: int | None, bound: str, text: str) -> None:
    schema = pa.schema(
        [(each.name, _TYPES.get(each.type, pa.string())) for each in table("lag").columns]
    )
    row = {"group_id": "g", "topic": "t", "partition": 0, "verdict": "behind"}
    rows = pa.Table.from_pylist([{**row, "loss_in_ms": length, "loss_in_bound": bound}], schema)
    (head, line, *_) = render([lag_section(rows)], "text", {}).splitlines()

    assert line[head.index("LOST-IN") :].split("  ")[0].strip() == text


@pytest.mark.parametrize("form", ["text", "markdown"])
def test_where_nothing_went_back_there_is_a_table_without_rows(form: str) -> None:
    assert (
        "GROUP"
        in render([moves_section(arrow_schema("offset_moves").empty_table())], form, {}).upper()
    )
