"""Rows of tables are put in the order of their key, whatever order they come in."""

import random
from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from analytics.contracts import are_in_strict_order, in_key_order

SCHEMA = {"offset": pl.Int64(), "name": pl.String(), "part": pl.Int32(), "place": pl.Int64()}
KEYS = (["offset", "name", "part"], ["name", "offset"], ["part", "name"], ["part"], [])


def by_key(rows: Sequence[dict[str, Any]], key: Sequence[str]) -> list[dict[str, Any]]:
    """Sort plain rows: nulls are last, and names go by their bytes."""

    def place(row: dict[str, Any]) -> list[tuple[bool, Any]]:
        values = [row[name] for name in key]
        return [
            (each is None, each.encode() if isinstance(each, str) else each or 0) for each in values
        ]

    return sorted(rows, key=place)


@pytest.mark.parametrize("key", KEYS, ids=",".join)
@pytest.mark.parametrize("constant", [True, False])
def test_random_rows_come_in_the_order_of_the_key(key: list[str], *, constant: bool) -> None:
    draw = random.Random(f"{key} {constant}")
    for _ in range(300):
        rows = [
            {
                "offset": 7 if constant else draw.choice([None, 1, 2, 3]),
                "name": draw.choice([None, "", "a", "b", "é", "ab"]),
                "part": draw.choice([0, 1, 2]),
                "place": place,
            }
            for place in range(draw.randint(0, 7))
        ]
        ordered = rows if draw.random() < 0.7 else by_key(rows, key)
        assert in_key_order(pl.DataFrame(ordered, SCHEMA), key).to_dicts() == by_key(ordered, key)


def test_rows_in_order_are_the_same_frame() -> None:
    rows = pl.DataFrame({"name": ["a", "a", "b"], "part": [1, 2, None]})
    assert in_key_order(rows, ["name", "part"]) is rows


def test_disorder_behind_the_first_rows_is_seen() -> None:
    rows = pl.DataFrame({"part": [*range(5000), 4998], "name": "x"})
    assert in_key_order(rows, ["part", "name"])["part"].to_list() == sorted(rows["part"].to_list())


@given(
    st.lists(
        st.tuples(*[st.none() | st.integers(min_value=0, max_value=2)] * 2), max_size=6
    ).flatmap(lambda rows: st.sampled_from([rows, sorted(rows, key=str)]))
)
def test_rows_in_strict_order_are_greater_each_than_the_one_before(
    rows: list[tuple[int | None, int | None]],
) -> None:
    frame = pl.DataFrame(rows, schema={"a": pl.Int64, "b": pl.Int64}, orient="row")
    ranks = [tuple((each is None, each or 0) for each in row) for row in rows]
    wanted = all(one < other for one, other in pairwise(ranks))
    assert are_in_strict_order(frame, ["a", "b"]) == wanted
