"""What a loss may have hidden, held against looking at each lost record by itself."""

from __future__ import annotations

from random import Random

import polars as pl
import pytest

from analytics.contracts import AFTER_ALL
from analytics.dump.inspection.found_losses import Loss, merged
from analytics.replay.log.losses import (
    HOME,
    Coverage,
    born_from,
    lost_between,
    lost_until,
    may_be_superseded,
    uncompacted_from,
    with_missing,
)

OFFSETS = "__consumer_offsets"
PARTITIONS, END, PLACES = 12, 400, 2000
MANY = 40


def random_losses(chance: Random, most: int) -> list[Loss]:
    firsts = [chance.randrange(END) for _ in range(chance.randint(0, most))]
    return merged(Loss(first, first + chance.choice((1, 2, 9)), "gone") for first in firsts)


def coverage_of(losses: dict[int, list[Loss]]) -> Coverage:
    held = {(OFFSETS, number): each for number, each in losses.items() if each}
    # Partitions of another topic have the same numbers.
    held["__share_group_state", 0] = [Loss(0, 2 * END, "gone")]
    return Coverage(complete_from={key: each[-1].end for key, each in held.items()}, losses=held)


def places(chance: Random) -> pl.DataFrame:
    rows = [
        (chance.randrange(PARTITIONS), *sorted(chance.sample(range(-1, END), 2)))
        for _ in range(PLACES)
    ]
    return pl.DataFrame(rows, {HOME: pl.Int32, "after": pl.Int64, "before": pl.Int64}, orient="row")


@pytest.mark.parametrize("seed", range(5))
def test_a_lost_record_may_lie_between_two_offsets(seed: int) -> None:
    chance = Random(seed)
    losses = {number: random_losses(chance, 6) for number in range(PARTITIONS)}
    asked = places(chance)
    told = asked.with_columns(
        lost=lost_between(coverage_of(losses), pl.col("after"), pl.col("before"))
    )
    answers = set()
    for home, after, before, lost in told.iter_rows():
        gone = {offset for each in losses[home] for offset in range(each.first, each.end)}
        if not gone.isdisjoint((after, before)):
            continue
        between = not gone.isdisjoint(range(after + 1, before))
        assert (lost is not None) == between
        assert lost is None or f"{OFFSETS}-{home} lacks" in lost
        answers.add(between)
    assert answers == {True, False}


def test_of_very_many_losses_none_is_overlooked() -> None:
    losses = [Loss(4 * each, 4 * each + 1, "gone") for each in range(MANY)]
    asked = pl.DataFrame(
        {
            HOME: pl.Series([0] * 4 * MANY, dtype=pl.Int32),
            "after": range(-1, 4 * MANY - 1),
            "before": range(1, 4 * MANY + 1),
        }
    )
    lost = asked.select(
        "before", lost=lost_between(coverage_of({0: losses}), pl.col("after"), pl.col("before"))
    )
    hit = lost.filter(pl.col("lost").is_not_null())["before"].to_list()
    assert set(hit) >= {each.first + 1 for each in losses}
    assert set(range(1, 100)) - set(hit), "the first of them are looked at one by one"


def test_what_lies_behind_all_losses_holds() -> None:
    coverage = coverage_of({0: [Loss(3, 5, "gone"), Loss(8, 9, "gone")], 1: []})
    asked = pl.DataFrame(
        {HOME: pl.Series([0, 0, 0, 1], dtype=pl.Int32), "record_offset": [0, 8, 9, 0]}
    )
    told = with_missing(asked, may_be_superseded(coverage, pl.col("record_offset")))
    assert told["complete"].to_list() == [False, False, True, True]
    start = f"a lost record may have changed it: {OFFSETS}-0 lacks"
    assert [(each or "").startswith(start) for each in told["missing"]] == [
        True,
        True,
        False,
        False,
    ]


def test_nothing_is_missing_where_no_reason_is_given() -> None:
    told = with_missing(pl.DataFrame({"why": ["", None, "x"]}), pl.col("why"))
    assert told.select("missing", "complete").rows() == [(None, True), (None, True), ("x", False)]


def test_from_where_on_a_partition_shows_what_was_written() -> None:
    coverage = Coverage(
        complete_from={(OFFSETS, 1): 4},
        uncompacted_from={(OFFSETS, 1): 7, (OFFSETS, 2): 9, ("__share_group_state", 0): 5},
        cleaned_until={(OFFSETS, 2): 8},
    )
    homes = pl.DataFrame({HOME: pl.Series([0, 1, 2], dtype=pl.Int32)})
    told = homes.select(
        shown=uncompacted_from(coverage),
        of_share=uncompacted_from(coverage, "__share_group_state"),
        lost=lost_until(coverage),
        born=born_from(coverage),
    )
    assert told["shown"].to_list() == [0, 7, 9]
    assert told["of_share"].to_list() == [5, 0, 0]
    assert told["lost"].to_list() == [0, 4, 0]
    assert told["born"].to_list() == [0, AFTER_ALL, 8]
