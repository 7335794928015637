"""Numbers of keys: they part what names part, in the order of names."""

from __future__ import annotations

import random

import polars as pl

from analytics.replay.offsets.commit_rows import (
    GROUP,
    PLACE,
    TOPIC,
    in_log_order,
    numbered,
    place,
    with_places,
)

KEY = ("group_id", "coordinator_partition", "topic", "partition")
SCHEMA = {
    "coordinator_partition": pl.Int32,
    "group_id": pl.String,
    "topic": pl.String,
    "partition": pl.Int32,
    "record_offset": pl.Int64,
}


def commits(rows: int, seed: int) -> pl.DataFrame:
    draw = random.Random(seed)
    told = [
        (draw.randrange(3), draw.choice("abc"), draw.choice("xyz"), draw.choice((0, 1, 2**31 - 1)))
        for _ in range(rows)
    ]
    offsets = draw.sample(range(10 * rows), rows)
    every = [(*key, offset) for key, offset in zip(told, offsets, strict=True)]
    return pl.DataFrame(every, SCHEMA, orient="row")


def ranks(rows: pl.DataFrame, *names: str) -> list[int]:
    keys = rows.select(names).rows()
    order = {key: rank for rank, key in enumerate(sorted(set(keys)))}
    return [order[key] for key in keys]


def test_keys_are_numbered_in_the_order_of_names() -> None:
    for seed in range(20):
        found = with_places(commits(60, seed))
        assert found[GROUP].to_list() == ranks(found, *KEY[:2])
        assert found[TOPIC].to_list() == ranks(found, *KEY[:3])
        assert ranks(found, PLACE) == ranks(found, *KEY)
        assert with_places(found) is found


def test_other_rows_get_the_numbers_of_commits_or_are_left_out() -> None:
    known, others = with_places(commits(10, 1)), commits(60, 2)
    of_groups = numbered(others, GROUP, known)
    of_topics = numbered(others, TOPIC, known).with_columns(place().alias(PLACE))
    for names, number, found in ((KEY[:2], GROUP, of_groups), (KEY[:3], TOPIC, of_topics)):
        numbers = dict(zip(known.select(names).rows(), known[number], strict=True))
        expected = [numbers[key] for key in others.select(names).rows() if key in numbers]
        assert found[number].to_list() == expected
    shared = of_topics.join(known, on=list(KEY), suffix="_known")
    assert shared[PLACE].equals(shared[f"{PLACE}_known"], null_equal=False)


def test_rows_are_sorted_by_partition_and_offset() -> None:
    for seed in range(20):
        shuffled = with_places(commits(60, seed))
        found = in_log_order(shuffled)
        assert found.equals(shuffled.sort("coordinator_partition", "record_offset"))
        assert in_log_order(found) is found


def test_no_commits_have_no_numbers() -> None:
    nothing = in_log_order(with_places(commits(0, 1)))
    assert nothing.columns == [*SCHEMA, TOPIC, GROUP, PLACE]
    assert numbered(commits(5, 1), GROUP, nothing).is_empty()
