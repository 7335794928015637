"""How many members a group could use, by hand and against every way to deal partitions."""

from __future__ import annotations

from itertools import product
from typing import Any

import polars as pl
import pytest
from hypothesis import strategies as st

from analytics.questions.lag.sums import (
    KEEPS_UP,
    NO_MEMBERS,
    NO_PACE,
    NO_TREND,
    UNKNOWN_PACE,
    group_capacity,
    useful_members,
)
from tests.support.contract_rows import rows_of
from tests.support.examples import examples


def capacity(*partitions: dict[str, Any], members: int = 2) -> dict[str, Any]:
    rows = [
        {
            "group_id": "g",
            "topic": "t",
            "kind": "assigned",
            "partition": number,
            "advanced": 100,
            "commits": 2,
        }
        | {"owners": [{"member_id": f"m{number % members}"}] if members else None}
        | each
        for number, each in enumerate(partitions)
    ]
    there = pl.DataFrame({"group_id": ["g"] * members}, {"group_id": pl.String})
    (found,) = group_capacity(rows_of("lag", rows), there).to_dicts()
    return dict(found)


def test_even_partitions_are_work_for_a_member_each() -> None:
    found = capacity(*({"records_per_second": 10.0} for _ in range(6)))

    assert (found["useful_members"], found["heaviest_share"]) == (6, 1 / 6)
    assert (found["members"], found["idle_members"], found["records_per_second"]) == (2, 0, 60)
    assert (found["needed_members"], found["reason"]) == (None, NO_TREND)


def test_beside_a_heavy_partition_the_others_are_work_for_few() -> None:
    paces = [60.0, 20.0, 20.0, 20.0, 30.0, 10.0]
    found = capacity(*({"records_per_second": each} for each in paces))

    # 60; 30 + 20 + 10; 20 + 20: a fourth member takes nothing off the first.
    assert found["useful_members"] == 3
    assert (found["heaviest_partition"], found["heaviest_share"]) == (0, 60 / 160)


def test_partitions_that_stand_still_need_nobody_and_stale_ones_are_left_out() -> None:
    found = capacity(
        {"records_per_second": 10.0},
        {"records_per_second": 0.0, "advanced": 0},
        {"kind": "stale", "records_per_second": 99.0},
    )
    assert (found["partitions"], found["moving_partitions"]) == (2, 1)
    assert found["useful_members"] == 1


def test_without_a_pace_partitions_count() -> None:
    found = capacity(*[{"advanced": None, "commits": None}] * 2, members=3)

    assert (found["useful_members"], found["reason"], found["idle_members"]) == (2, NO_PACE, 1)


@pytest.mark.parametrize("lacking", [{}, {"advanced": None}], ids=["pace", "advance, too"])
@pytest.mark.parametrize("other", [{"advanced": 0}, {"records_per_second": 10.0}])
def test_commits_that_advanced_at_a_pace_that_nothing_tells_did_advance(
    other: dict[str, Any], lacking: dict[str, Any]
) -> None:
    """By the paces that are known fewer members would be useful than by all."""
    found = capacity({"records_per_second": None, **lacking}, other)

    assert found["moving_partitions"] == (1 if other.get("advanced") == 0 else 2)
    rests_on_paces = (
        *("records_per_second", "heaviest_topic", "heaviest_partition"),
        *("heaviest_share", "useful_members", "needed_members"),
    )
    assert {found[name] for name in rests_on_paces} == {None}
    assert (found["partitions"], found["reason"]) == (2, UNKNOWN_PACE)


def test_while_a_lag_grows_its_growth_says_how_many_members_lack() -> None:
    # Two members read 100 a second, and 50 more come: three would keep up.
    growing = {"records_per_second": 50.0, "trend": "growing", "lag_per_second": 25.0}
    assert capacity(growing, growing)["needed_members"] == 3
    shrinking = {**growing, "trend": "shrinking", "lag_per_second": -25.0}
    assert capacity(shrinking, shrinking)["reason"] == KEEPS_UP
    assert capacity(growing, growing, members=0)["reason"] == NO_MEMBERS


@examples(20, 100, paces=st.lists(st.integers(1, 12), min_size=1, max_size=6))
def test_no_way_to_deal_partitions_makes_fewer_members_do_by_much(paces: list[int]) -> None:
    found = useful_members([float(each) for each in paces], len(paces))
    heaviest = max(paces)

    def is_enough(members: int) -> bool:
        ways = product(range(members), repeat=len(paces))
        return any(
            max(
                sum(pace for pace, whose in zip(paces, way, strict=True) if whose == member)
                for member in range(members)
            )
            <= heaviest
            for way in ways
        )

    assert is_enough(found)
    fewest = next(members for members in range(1, len(paces) + 1) if is_enough(members))
    # Dealing the heaviest first may take a member more than the best of all ways.
    assert fewest <= found <= fewest + 1
