"""Where groups lie in `__consumer_offsets`."""

from __future__ import annotations

from typing import Any

import polars as pl
import pytest

from analytics.questions.balance.case import Placement, placement
from analytics.replay.log.topic_homes import home_of
from schemas.evaluation_rules import rebalance_rules


@pytest.mark.parametrize(
    ("group", "home"),
    [
        ("", 0),
        ("group", 47),
        ("my-group", 12),
        ("console-consumer-12345", 6),
        ("gruppe-ä", 48),
        ("😀", 49),
        ("polygenelubricants", 0),  # its hash is the least integer, whose absolute value is none
    ],
)
def test_a_group_belongs_where_its_hash_says(group: str, home: int) -> None:
    assert home_of(group, 50) == home


def placed(groups: list[tuple[str, int]], *about: Any, **more: Any) -> Placement:
    schema = {"group_id": pl.String(), "coordinator_partition": pl.Int32()}
    return placement(pl.DataFrame(groups, schema, orient="row"), *about, **more)


def test_misplaced_groups_are_named_with_both_places() -> None:
    found = placed([("group", 47), ("my-group", 13)], 50, rebalance_rules())
    assert found.misplaced == (("my-group", 13, 12),)
    assert (found.groups, found.used, found.most, found.fullest) == (2, 2, 1, 13)


def test_a_partition_with_many_more_groups_than_the_mean_is_overloaded() -> None:
    groups = [(f"g{number}", 7) for number in range(9)] + [("a", 1), ("b", 2)]
    assert placed(groups, 50, rebalance_rules()).overloaded == (7,)
    assert placed(groups[-2:], 50, rebalance_rules()).overloaded == ()


def test_partitions_that_the_dump_lacks_are_not_empty() -> None:
    groups = [(f"g{number}", number % 2) for number in range(18)]
    assert placed(groups, 50, rebalance_rules()).overloaded == (0, 1)
    assert placed(groups, 50, rebalance_rules(), present=2).overloaded == ()


def test_without_the_number_of_partitions_nothing_is_verified() -> None:
    found = placed([("group", 3)], None, rebalance_rules())
    assert (found.misplaced, found.overloaded, found.most) == ((), (), 1)
    assert placed([], 50, rebalance_rules()).fullest is None
