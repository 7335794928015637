"""Rows of `data_quality` as an audit has them, and the expectations that they tell of."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from typing import Any, Final

from analytics.questions.data_quality.data_docs import Validation
from schemas.expectation_suites import Expectation, expected_by_contract, suite_of
from schemas.model import Table

HOSTILE: Final = "<script>document.title = 1</script> $name ${call}"
VALIDATION: Final = Validation("dumps/today", datetime(2026, 11, 27, 8, 30, tzinfo=UTC))
TEAM: Final = "our lag.json"
_SUITE: Final = {
    "expectations": [
        {
            "type": "expect_rows_at_most",
            "severity": "critical",
            "kwargs": {"column": "lag", "value": 1000},
            "meta": {"name": f"nobody behind {HOSTILE}", "where": {"topic": [HOSTILE]}},
        },
        {
            "type": "expect_column_values_to_be_in_set",
            "kwargs": {"column": "topic", "value_set": ["orders", HOSTILE]},
        },
        {
            "type": "expect_column_values_to_match_regex",
            "kwargs": {"column": "topic", "regex": "("},
        },
        {"type": "expect_table_row_count_to_be_between", "kwargs": {"max_value": 7}},
        {
            "type": "expect_table_columns_to_match_ordered_list",
            "kwargs": {"column_list": ["group_id", "topic"]},
        },
        {"type": "expect_what_nobody_knows", "kwargs": {"column": f"{HOSTILE}"}},
    ]
}


def quality_row(expected: Expectation, outcome: str = "passed", **more: Any) -> dict[str, Any]:
    """Return a row of `data_quality` of an expectation."""
    return {
        "table": expected.table,
        "expectation": expected.name,
        "columns": ", ".join(expected.columns),
        "severity": expected.severity,
        "outcome": outcome,
        "unexpected_count": 0 if outcome == "passed" else None,
        "example": None,
        "reason": expected.about or None,
        "rows": 12,
        "suite": expected.suite,
        "type": expected.type,
        **more,
    }


def judged_rows(
    contract: Table,
) -> tuple[list[dict[str, Any]], dict[tuple[str, str, str], Expectation]]:
    """Return rows about a table whose contract holds, and a team's suite with all outcomes.

    Returns:
        The rows, and by table, suite and name the expectations.
    """
    ours = expected_by_contract(contract)
    at_most, in_set, regex, count, columns, unknown = suite_of(_SUITE, contract.name, TEAM)
    rows = [
        quality_row(regex, "broken", reason="missing ), unterminated subpattern"),
        quality_row(unknown, "broken", reason=f"no column {HOSTILE}"),
        quality_row(
            at_most, "failed", unexpected_count=3, example=json.dumps({"group_id": HOSTILE})
        ),
        quality_row(in_set, "failed", unexpected_count=1, example=json.dumps(HOSTILE)),
        quality_row(count, "failed", example="12"),
        quality_row(columns, unexpected_count=None),
        *map(quality_row, ours),
    ]
    expected = (*ours, at_most, in_set, regex, count, columns, unknown)
    return rows, {(each.table, each.suite, each.name): each for each in expected}
