"""Each rule fires on the row made for it, and not on its sound neighbours (cases/findings)."""

from __future__ import annotations

import json
import re
import string
from datetime import datetime
from pathlib import Path
from typing import Any

import polars as pl
import pyarrow as pa
import pytest

from analytics.questions.findings.advice import WordedValue, worded
from analytics.questions.findings.configured_rules import SUPPRESSIONS
from analytics.questions.findings.found import findings
from reports.plain_text import duration, size_of
from schemas.finding_rules import SEVERITIES, FindingRule, finding_rules
from tests.support import written_workspace

CASES = json.loads((Path(__file__).parents[3] / "cases" / "findings.json").read_text("utf-8"))
AS_OF = datetime.fromisoformat(CASES["as_of"])
ASKED_OF = {"input": "/dumps/broker-1", "dump": "/dumps/broker-1"}
SAYS = {"bytes": size_of, "duration": duration}
RULES = {rule.name: rule for rule in finding_rules()}
_OF_MANIFESTS = {
    "log_partitions": pa.schema(
        [
            *((name, pa.string()) for name in ("topic", "copy", "lacks")),
            ("partition", pa.int32()),
            ("is_leading", pa.bool_()),
            ("bytes_damaged", pa.int64()),
            ("deleted_below", pa.int64()),
        ]
    ),
    "absent_partitions": pa.schema([("topic", pa.string()), ("partitions", pa.int64())]),
    "suppressions": SUPPRESSIONS,
}


def schema_of(name: str) -> pa.Schema:
    return _OF_MANIFESTS.get(name) or written_workspace.schema_of(name)


def found(rule: FindingRule, *rows: dict[str, Any]) -> list[dict[str, Any]]:
    schema = schema_of(rule.table)
    filled = [{"group_id": "billing", "topic": "orders", **row} for row in rows]
    typed = [
        {
            name: datetime.fromisoformat(value)
            if isinstance(value, str) and pa.types.is_timestamp(schema.field(name).type)
            else value
            for name, value in row.items()
            if name in schema.names
        }
        for row in filled
    ]
    table = pa.Table.from_pylist(typed, schema)
    result: list[dict[str, Any]] = findings(
        [rule], {rule.table: table}, AS_OF, SAYS, ASKED_OF
    ).to_pylist()
    return result


def test_every_rule_has_its_cases() -> None:
    assert CASES["cases"].keys() == RULES.keys()
    assert len(RULES) >= 45


@pytest.mark.parametrize("name", sorted(RULES))
def test_a_rule_fires_on_its_case(name: str) -> None:
    (row,) = found(RULES[name], CASES["cases"][name]["fires"])
    assert row["rule"] == name
    assert row["severity"] in SEVERITIES
    assert "{" not in row["message"] + (row["suggestion"] or "")


@pytest.mark.parametrize("name", sorted(RULES))
def test_a_rule_is_silent_on_sound_neighbours(name: str) -> None:
    case = CASES["cases"][name]
    assert case["silent"] or not RULES[name].where
    for other in case["silent"]:
        assert found(RULES[name], case["fires"] | other) == []
        (column,) = other
        # What cannot be told is no finding of a rule that asks for it, unless that is the question.
        asks_for_null = {each["column"] for each in RULES[name].where if each.get("is_null")}
        if other[column] is None or column in asks_for_null:
            continue
        if RULES[name].table != "suppressions":
            assert found(RULES[name], case["fires"] | {column: None}) == []


@pytest.mark.parametrize("name", sorted(RULES))
def test_a_rule_reads_columns_that_its_table_has_and_words_what_it_knows(name: str) -> None:
    rule = RULES[name]
    assert rule.columns() <= set(schema_of(rule.table).names)
    used = {field for _, field, _, _ in string.Formatter().parse(rule.message) if field}
    restoring = {"groups", "before", "folder"} if rule.restore else set()
    otherwise = rule.restore.otherwise if rule.restore else ""
    suggested = string.Formatter().parse(rule.suggestion + otherwise)
    of_tool = {"tool", "topic_option"} if rule.names_tool_of_group() else set()
    given = {*restoring, *ASKED_OF, *of_tool}
    used |= {field for _, field, _, _ in suggested if field} - given
    assert used <= {*rule.per, *rule.values, *rule.thresholds}
    assert rule.question.endswith("?")


_BEHIND_ONE = re.compile(r"\b1 [^,:;()]*?\b(have|are|were|do|go|expire|belong|contradict|mean)\b")
_OF_MANY = re.compile(r"\b(they|their|them|these)\b")


@pytest.mark.parametrize("name", sorted(RULES))
def test_what_is_said_of_one_is_in_the_singular(name: str) -> None:
    message = RULES[name].message
    parts = [each for each in string.Formatter().parse(message) if each[1]]
    counted = {field for _, field, noun, _ in parts if noun}
    values = {
        str(field): WordedValue(1 if field in counted else pl.Series(["x"]))
        for _, field, _, _ in parts
    }
    (said,) = worded(message, values, {}, 1)
    assert not _BEHIND_ONE.search(said), said
    assert not (counted and _OF_MANY.search(said)), said
    assert not re.search(r"\b1 [a-z-]+s\b(?! of)", said), said


@pytest.mark.parametrize(
    ("count", "lag", "said"),
    [
        (1, 2, "owns 1 partition of orders that has 2 records to read"),
        (2, 1, "owns 2 partitions of orders that have 1 record to read"),
    ],
)
def test_partitions_that_nobody_owns_have_a_verb_of_their_number(
    count: int, lag: int, said: str
) -> None:
    row = CASES["cases"]["partitions_unread"]["fires"]
    rows = [row | {"partition": n, "lag": lag if n == 0 else 0} for n in range(count)]
    (one,) = found(RULES["partitions_unread"], *rows)
    assert said in one["message"]
