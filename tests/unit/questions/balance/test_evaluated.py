"""Cases of one shape are judged once, and come out as if each had been judged by itself."""

from __future__ import annotations

import random
import uuid
from collections.abc import Callable
from typing import Any

import polars as pl
import pyarrow as pa
import pytest

from analytics.questions.balance.evaluated import (
    ALTERNATIVES,
    BALANCE,
    SHAPE,
    judged,
    tables_of,
    with_gaps,
    with_shapes,
)
from schemas.evaluation_rules import balance_rules
from tests.unit.questions.balance.test_case_rows import member, row, topic

MANY = 150
_PARTITION = pl.Struct({"topic": pl.String, "partition": pl.Int32})
_LISTS = {
    "members": pl.List(
        pl.Struct(
            {
                **dict.fromkeys(("member_id", "group_instance_id", "rack_id"), pl.String),
                "member_epoch": pl.Int32,
                **dict.fromkeys(("state", "unread"), pl.String),
                "wants": pl.List(pl.String),
                "has": pl.List(pl.Struct({"topic": pl.String, "partitions": pl.List(pl.Int32)})),
            }
        )
    ),
    "topics": pl.List(
        pl.Struct(
            {
                **dict.fromkeys(("topic", "topic_id"), pl.String),
                "partitions": pl.Int32,
                "counted_by": pl.String,
                "assignable": pl.List(pl.Int32),
            }
        )
    ),
    "owned_before": pl.List(_PARTITION),
}


def tables_of_cases(rows: pl.DataFrame, gaps: dict[str, str]) -> dict[str, pa.Table]:
    return tables_of([judged(rows, balance_rules(), gaps)])


def cases(*rows: dict[str, Any]) -> pl.DataFrame:
    time = pl.Series([None] * len(rows), dtype=pl.Datetime("us", "UTC"))
    found = [
        {"moved": None, "owned_before": None, **each, "from_offset": n}
        for n, each in enumerate(rows)
    ]
    texts = ("protocol_type", "protocol", "unread")
    return pl.DataFrame(
        found, schema_overrides={**_LISTS, **dict.fromkeys(texts, pl.String), "moved": pl.Int32}
    ).with_columns(time.alias("from_timestamp"), time.alias("to_timestamp"))


def long_name(draw: random.Random) -> str:
    return f"app-{uuid.UUID(int=draw.getrandbits(128))}"


def short_name(draw: random.Random) -> str:
    return draw.choice("abcdehnoprst") + str(draw.randint(0, 9))


def odd_name(draw: random.Random) -> str:
    return draw.choice("é\ue000\U0001f600") + long_name(draw)


def random_row(
    draw: random.Random, number: int, name: Callable[[random.Random], str]
) -> dict[str, Any]:
    """A group of few shapes: topics `a` and `b`, members with names of their own."""
    group_type, protocol = draw.choice(
        [
            ("classic", "range"),
            ("classic", "sticky"),
            ("classic", "cooperative-sticky"),
            ("consumer", "uniform"),
        ]
    )
    counts = {"a": draw.choice([2, 3]), "b": 4}
    names = sorted({name(draw) for _ in range(draw.choice([1, 2, 3, 3]))})
    deal = draw.choice(["even", "even", "none", "all to one", "doubled"])
    members = []
    for place, each in enumerate(names):
        held = {
            topic: [
                partition
                for partition in range(count)
                if deal == "doubled"
                or (deal == "all to one" and place == 0)
                or (deal == "even" and partition % len(names) == place)
            ]
            for topic, count in counts.items()
        }
        has = [{"topic": topic, "partitions": each} for topic, each in held.items() if each]
        epoch = draw.choice([7, 7, 7, 6])
        members.append(
            member(each, ["b", "a"] if place else ["a", "b"], has=has, member_epoch=epoch)
        )
    return row(
        members,
        [topic(each, count) for each, count in counts.items()],
        group_id=f"group-{number}",
        group_type=group_type,
        protocol=protocol,
        epoch=7 if group_type == "consumer" else draw.randint(1, 99),
        assignment_epoch=7 if group_type == "consumer" else None,
        owned_before=draw.choice([None, [{"topic": "a", "partition": 0}]]),
    )


def rows_of(tables: list[dict[str, pa.Table]], name: str) -> list[str]:
    return sorted(str(each) for table in tables for each in table[name].to_pylist())


@pytest.mark.parametrize("name", [long_name, short_name, odd_name])
@pytest.mark.parametrize("seed", [0, pytest.param(1, marks=pytest.mark.long)])
def test_what_is_judged_together_is_as_judged_alone(
    seed: int, name: Callable[[random.Random], str]
) -> None:
    draw = random.Random(seed)
    every = cases(*(random_row(draw, number, name) for number in range(MANY)))
    together = [tables_of_cases(every, {"group-3": "it lacks records"})]
    alone = [
        tables_of_cases(some, {"group-3": "it lacks records"}) for some in every.iter_slices(1)
    ]
    for table in (BALANCE, ALTERNATIVES):
        assert rows_of(together, table) == rows_of(alone, table)
    shapes = with_shapes(with_gaps(every, {}))[SHAPE].n_unique()
    assert shapes == MANY if name is odd_name else shapes < MANY * 0.9


def test_members_whose_places_in_javas_map_differ_are_two_shapes() -> None:
    def of(first: str, second: str) -> dict[str, Any]:
        return row([member(first, ["a"]), member(second, ["a"])], [topic("a", 1)])

    # A map of two has 16 buckets; `a`, `b`, `q` hash to 97, 98 and 113: buckets 1, 2 and 1.
    found = with_shapes(with_gaps(cases(of("a", "b"), of("b", "q"), of("c", "d")), {}))
    assert found[SHAPE].to_list() == [0, 1, 0]


def test_without_cases_there_are_no_rows() -> None:
    nothing = tables_of_cases(cases(row([], [])).clear(), {})
    assert [each.num_rows for each in nothing.values()] == [0, 0]


def test_a_group_that_may_lack_records_is_not_judged() -> None:
    sound = row([member("m", ["a"])], [topic("a", 1)], group_id="g")
    gaps = {"g": "a lost record may have changed it"}
    (found,) = tables_of_cases(cases(sound), gaps)[BALANCE].to_pylist()
    told = (found["verdict"], found["cause"], found["score"])
    assert told == ("cannot_tell", gaps["g"], None)
    (other,) = tables_of_cases(cases(sound), {"other": "x"})[BALANCE].to_pylist()
    assert other["verdict"] == "unread"
