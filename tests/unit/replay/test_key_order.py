"""Rows of tables are put in the order of their key, whatever order they come in."""

import random
from collections.abc import Sequence
from typing import Any

import polars as pl
import pytest

from analytics.key_order import in_key_order

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
        given = rows if draw.random() < 0.7 else by_key(rows, key)
        assert in_key_order(pl.DataFrame(given, SCHEMA), key).to_dicts() == by_key(given, key)


def test_rows_in_order_are_the_same_frame() -> None:
    rows = pl.DataFrame({"name": ["a", "a", "b"], "part": [1, 2, None]})
    assert in_key_order(rows, ["name", "part"]) is rows


def test_disorder_behind_the_first_rows_is_seen() -> None:
    rows = pl.DataFrame({"part": [*range(5000), 4998], "name": "x"})
    assert in_key_order(rows, ["part", "name"])["part"].to_list() == sorted(rows["part"].to_list())
