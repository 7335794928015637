"""A gap is a row with a code; its words come from its kind, of one row or of many."""

from __future__ import annotations

import ast
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import polars as pl
import pyarrow as pa
import pytest

from analytics.gaps.gap import (
    Gap,
    check_gaps,
    gap,
    gap_documents,
    gap_of_row,
    gap_rows,
    joined,
    joined_reasons,
    words_expression,
    words_of,
)
from analytics.gaps.group_selection import GroupSelection
from analytics.questions.question import Answer
from schemas import CONSUMER_OFFSETS
from schemas.gaps import GapKind, Template, gap_kinds, parameter_type

WITHOUT_COPY = gap(
    "home_without_copy",
    group_id="payments",
    topic=CONSUMER_OFFSETS,
    partition=12,
    guessed_partitions=50,
)
LOST = gap("group_incomplete", group_id="payments", missing="the last records")
NESTED = gap("more_groups_may_match", pattern="pay*", why=WITHOUT_COPY)


def test_words_are_those_of_the_kind() -> None:
    assert WITHOUT_COPY.words == (
        "payments belongs to __consumer_offsets-12, of which this dump has no copy "
        "(if that topic has 50 partitions: nothing says)"
    )
    assert NESTED.words == f"whether more groups match 'pay*': {WITHOUT_COPY.words}"
    assert (LOST.words, LOST.reason) == ("payments: the last records", "the last records")


@pytest.mark.parametrize(
    ("code", "values", "error"),
    [
        ("no_such_code", {}, KeyError),
        ("group_incomplete", {"group_id": "g"}, TypeError),
        ("group_incomplete", {"missing": "records"}, TypeError),
        ("group_incomplete", {"group_id": "g", "missing": 3}, TypeError),
        ("group_incomplete", {"group_id": "g", "missing": "records", "more": 1}, TypeError),
        ("group_incomplete", {"group_id": "g", "missing": "records", "topic": "t"}, TypeError),
        ("lag_unknown", {"offsets": True, "why": "records"}, TypeError),
        ("more_groups_may_match", {"pattern": "g*", "why": "a sentence"}, TypeError),
        ("topics_uncertain", {"topics": "orders", "why": "a clock"}, TypeError),
    ],
)
def test_what_its_kind_does_not_declare_is_refused(
    code: str, values: dict[str, Any], error: type[Exception]
) -> None:
    with pytest.raises(error):
        gap(code, **values)


def test_no_sentence_is_taken_for_a_gap() -> None:
    sentence: Any = "cannot tell: something"
    with pytest.raises(TypeError):
        check_gaps([LOST, sentence])
    with pytest.raises(TypeError):
        Answer({}, doubts=(sentence,))
    with pytest.raises(TypeError):
        GroupSelection(pa.table({}), (sentence,), ())


def test_the_same_is_said_once() -> None:
    answer = Answer({}, GroupSelection(pa.table({}), (LOST, NESTED), ()), (LOST,))
    assert answer.gaps == (LOST, NESTED)
    assert answer.cannot_tell == words_of(answer.gaps) == (LOST.words, NESTED.words)
    assert joined((LOST, LOST)) == LOST.words
    assert joined_reasons((LOST, LOST)) == "the last records"
    assert joined(()) is None


def test_a_row_has_all_that_the_gap_has() -> None:
    rows = gap_rows({"lag": [LOST, NESTED, LOST], "share": [WITHOUT_COPY]}).to_pylist()
    assert [each["question"] for each in rows] == ["lag", "lag", "share"]
    assert [gap_of_row(each) for each in rows] == [LOST, NESTED, WITHOUT_COPY]
    assert rows[2]["group_id"] == "payments"
    assert rows[2]["partition"] == 12
    assert rows[2]["parameters"] == '{"guessed_partitions": 50}'
    assert rows[2]["words"] == WITHOUT_COPY.words


def test_json_has_the_same() -> None:
    (document,) = gap_documents([NESTED, NESTED])
    assert document["code"] == "more_groups_may_match"
    assert document["words"] == NESTED.words
    assert document["parameters"]["pattern"] == "pay*"
    assert document["parameters"]["why"]["partition"] == 12


def test_many_rows_have_the_words_that_one_has() -> None:
    for kind in gap_kinds().values():
        if not kind.counts or any(each.is_list for each in kind.parameters.values()):
            continue
        for number in (0, 1, 2, 999, 1000, 1234567):
            assert in_columns(kind, number) == one(kind, number).words, kind.code


def one(kind: GapKind, number: int) -> Gap:
    """A gap whose counts are a number, and whose texts are their names."""
    of_place = {"partition": 7, "from_offset": 7, "to_offset": 7}
    times = dict.fromkeys(("from_time", "to_time"), datetime(2026, 1, 1, tzinfo=UTC))
    values: dict[str, Any] = {name: ({**of_place, **times}).get(name, name) for name in kind.place}
    for name, declared in kind.parameters.items():
        integers = {"count": number, "number": 7}
        values[name] = integers.get(declared.name, name)
    return gap(kind.code, **values)


def in_columns(kind: GapKind, number: int) -> str:
    """Return the words that an expression has."""
    made = one(kind, number)
    values = {**made.place, **made.parameters}
    columns = {
        each.name: pl.lit(values[each.name])
        for each in kind.template.values
        if values[each.name] is not None
    }
    words: str = pl.select(words_expression(kind.code, **columns)).item()
    return words


def test_rows_without_a_reason_have_no_words() -> None:
    why = pl.Series("why", ["a segment is missing", None])
    words = pl.select(words_expression("share_state_absent", why=pl.lit(why))).to_series()
    assert words.to_list() == [
        "no record of its state is in the dump, and a segment is missing",
        None,
    ]


def test_every_code_is_made_somewhere_and_none_that_is_made_lacks() -> None:
    root = Path(__file__).resolve().parents[3] / "analytics"
    texts = {
        each.value
        for path in root.rglob("*.py")
        for each in ast.walk(ast.parse(path.read_text("utf-8")))
        if isinstance(each, ast.Constant) and isinstance(each.value, str)
    }
    assert set(gap_kinds()) - texts == set()


def test_names_are_known_by_their_type() -> None:
    assert parameter_type("groups").identifies == "group"
    assert parameter_type("topic?").identifies == "topic"
    assert parameter_type("text").identifies is None
    assert Template("{group_id}: gone").without_group.text == "gone"
