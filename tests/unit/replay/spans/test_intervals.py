"""Spans overlap where comparing all with all says so, and are joined where they touch."""

from __future__ import annotations

import itertools
from datetime import UTC, datetime

import hypothesis.strategies as st
import polars as pl
from hypothesis import given

from analytics.contracts import AFTER_ALL, BEFORE_ALL
from analytics.replay.log.spans import SPAN, SPAN_TYPES, joined_spans, overlap, until_next

KEY = ("key",)
Span = tuple[str, int, int, int]
"""Key, begin, end, and a number that tells it apart."""


@st.composite
def spans(draw: st.DrawFn, *, are_apart: bool) -> list[Span]:
    found: list[Span] = []
    for key in "ab":
        reached = BEFORE_ALL
        for _ in range(draw(st.integers(0, 5))):
            least = reached if are_apart else BEFORE_ALL
            begin = draw(st.integers(least, least + 9))
            end = draw(st.one_of(st.integers(begin + 1, begin + 6), st.just(AFTER_ALL)))
            found.append((key, begin, end, len(found)))
            reached = end
            if are_apart and end == AFTER_ALL:
                break
    return found


def at(offset: int) -> datetime | None:
    return None if offset in {BEFORE_ALL, AFTER_ALL} else datetime.fromtimestamp(offset, UTC)


def frame(told: list[Span], number: str) -> pl.DataFrame:
    rows = [(key, begin, end, at(begin), at(end), nth) for key, begin, end, nth in told]
    schema = {"key": pl.String(), **SPAN_TYPES, number: pl.Int64()}
    return pl.DataFrame(rows, schema=schema, orient="row")


@given(spans(are_apart=False), spans(are_apart=True))
def test_spans_overlap_from_the_later_begin_to_the_sooner_end(
    one: list[Span], other: list[Span]
) -> None:
    expected = {
        (a[0], a[3], b[3], max(a[1], b[1]), min(a[2], b[2]))
        for a in one
        for b in other
        if a[0] == b[0] and a[1] < b[2] and b[1] < a[2]
    }
    found = overlap(frame(one, "x"), frame(other, "y"), KEY)
    assert {*found.select("key", "x", "y", "from_offset", "to_offset").rows()} == expected
    for row in found.iter_rows(named=True):
        assert (row["from_at"], row["to_at"]) == (at(row["from_offset"]), at(row["to_offset"]))


@given(spans(are_apart=False))
def test_joined_spans_cover_the_same_and_neither_touch_nor_overlap(told: list[Span]) -> None:
    found = joined_spans(frame(told, "x").drop("x"), KEY).rows(named=True)
    for before, after in itertools.pairwise(found):
        assert before["key"] != after["key"] or before["to_offset"] < after["from_offset"]
    for place in range(BEFORE_ALL, 60):
        covered = {key for key, begin, end, _ in told if begin <= place < end}
        assert covered == {
            row["key"] for row in found if row["from_offset"] <= place < row["to_offset"]
        }
    for row in found:
        assert (row["from_at"], row["to_at"]) == (at(row["from_offset"]), at(row["to_offset"]))


def test_a_span_ends_where_the_next_record_of_its_key_lies() -> None:
    records = frame([("a", 4, 5, 0), ("b", 2, 5, 1), ("a", 1, 5, 2)], "x")
    found = until_next(records.select("key", "from_offset", "from_at"), KEY).select("key", *SPAN)
    assert found.rows() == [
        ("a", 1, 4, at(1), at(4)),
        ("a", 4, AFTER_ALL, at(4), None),
        ("b", 2, AFTER_ALL, at(2), None),
    ]
