"""What the checksum does not cover is judged by what a log can hold."""

from __future__ import annotations

import random
from dataclasses import replace
from itertools import combinations, pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from analytics.dump.batches.headers import Batches
from analytics.dump.batches.layout import no_batches
from analytics.dump.batches.log_bounds import LogSense, implausible_epochs, implausible_offsets

Interval = tuple[int, int]

UNKNOWN = LogSense()


def batches(*intervals: Interval, epochs: list[int] | None = None) -> Batches:
    rows = len(intervals)
    columns = {name: np.zeros(rows, column.dtype) for name, column in vars(no_batches()).items()}
    made = Batches(**columns)
    return replace(
        made,
        position=np.arange(rows, dtype=np.int64) * 100,
        size=np.full(rows, 100, np.int64),
        base_offset=np.array([each[0] for each in intervals], np.int64),
        last_offset=np.array([each[1] for each in intervals], np.int64),
        leader_epoch=np.array(epochs or [0] * rows, np.int32),
    )


def blamed(*intervals: Interval, sense: LogSense = UNKNOWN) -> list[int]:
    return np.flatnonzero(implausible_offsets(batches(*intervals), sense)).tolist()


def doubted(epochs: list[int], sense: LogSense = UNKNOWN) -> list[int]:
    made = batches(*((each, each) for each in range(len(epochs))), epochs=epochs)
    return np.flatnonzero(implausible_epochs(made, sense)).tolist()


def test_a_log_with_holes_is_plausible() -> None:
    assert blamed((0, 9), (10, 19), (50, 50), (90, 99)) == []


@pytest.mark.parametrize("base", [0, 5, 15, 21, 25, 29, 31, 1000])
def test_one_wrong_offset_among_many_is_the_one_that_is_blamed(base: int) -> None:
    log = [(n * 10, n * 10 + 9) for n in range(7)]
    log[2] = (base, base + 9)

    assert blamed(*log) == [2]


def test_at_the_end_of_a_log_the_batch_that_leaves_a_hole_is_blamed() -> None:
    assert blamed((0, 9), (42, 51), (20, 29)) == [1]


def test_at_the_start_of_a_log_the_batch_that_leaves_a_hole_is_blamed() -> None:
    assert blamed((4096, 4105), (10, 19), sense=LogSense(base_offset=0)) == [0]


def test_a_batch_that_comes_twice_is_kept_once() -> None:
    assert blamed((0, 9), (10, 19), (10, 19), (20, 29)) == [2]


def test_a_run_that_comes_twice_is_kept_once() -> None:
    log = [(0, 9), (10, 19), (20, 29)]

    assert blamed(*log, *log, (30, 39)) == [3, 4, 5]


def test_offsets_below_the_segment_s_base_and_from_the_next_one_s_on_are_blamed() -> None:
    sense = LogSense(base_offset=10, end_offset=40)

    assert blamed((9, 12), (13, 20), (21, 39), (40, 41), sense=sense) == [0, 3]


@pytest.mark.parametrize("bit", [31, 40, 47, 62])
def test_a_last_batch_that_one_bit_takes_too_far_from_the_segment_s_base_is_blamed(
    bit: int,
) -> None:
    sense = LogSense(base_offset=100)

    assert blamed((100, 109), (110 | 1 << bit, 111 | 1 << bit), sense=sense) == [1]


@pytest.mark.parametrize("more", [1, 2])
def test_offsets_that_no_index_of_the_segment_can_name_are_those_of_an_old_merge(more: int) -> None:
    far = [(150 + 2**31 + n * 1000, 155 + 2**31 + n * 1000) for n in range(more)]

    assert blamed((100, 109), *far, sense=LogSense(base_offset=100)) == []


def test_where_a_log_has_no_holes_one_batch_that_far_off_is_blamed() -> None:
    sense = LogSense(base_offset=100, complete_from=90)

    assert blamed((100, 109), (150 + 2**31, 155 + 2**31), sense=sense) == [1]


def test_no_log_reaches_two_to_the_48th() -> None:
    far = [(n + 2**48, n + 2**48) for n in (7, 9)]

    assert blamed((100, 109), *far, sense=LogSense(base_offset=100)) == [1, 2]


def test_negative_and_backward_ranges_are_blamed() -> None:
    assert blamed((-5, 3), (0, 9), (10, 8), (20, 29)) == [0, 2]


def test_a_flipped_bit_at_the_end_of_a_log_without_holes_is_blamed() -> None:
    sense = LogSense(base_offset=0, complete_from=0)

    assert blamed((0, 9), (10, 19), (20 + 1024, 29 + 1024), sense=sense) == [2]


@pytest.mark.parametrize("complete_from", [None, 15, 21])
def test_a_missing_batch_is_no_reason_to_blame_the_one_after_it(complete_from: int | None) -> None:
    sense = LogSense(base_offset=0, complete_from=complete_from)

    assert blamed((0, 9), (10, 19), (26, 29), sense=sense) == []


def test_many_wrong_offsets_are_judged_quickly() -> None:
    order = np.random.default_rng(3).permutation(20_000).tolist()

    assert len(blamed(*((each, each) for each in order))) > 19_000


def _fewest(intervals: list[Interval]) -> int:
    for blamed_count in range(len(intervals) + 1):
        for kept in combinations(intervals, len(intervals) - blamed_count):
            if all(one[1] < two[0] for one, two in pairwise(kept)):
                return blamed_count
    raise AssertionError


@given(st.lists(st.tuples(st.integers(0, 30), st.integers(0, 5)), max_size=9))
def test_no_smaller_set_of_culprits_would_do(drawn: list[tuple[int, int]]) -> None:
    intervals = [(base, base + more) for base, more in drawn]
    culprits = blamed(*intervals)
    kept = [each for row, each in enumerate(intervals) if row not in culprits]

    assert all(one[1] < two[0] for one, two in pairwise(kept))
    assert len(culprits) == _fewest(intervals)


@pytest.mark.parametrize("seed", range(50))
def test_any_flipped_bit_of_an_offset_is_found_where_both_ends_are_known(seed: int) -> None:
    draw = random.Random(seed)
    edges = sorted(draw.sample(range(1, 500), 8))
    log = [(base, end - 1) for base, end in zip([0, *edges], edges, strict=False)]
    sense = LogSense(0, edges[-1])
    row, bit = draw.randrange(len(log)), draw.randrange(63)
    base, last = log[row]
    log[row] = (base ^ 1 << bit, (base ^ 1 << bit) + last - base)

    assert blamed(*log, sense=sense) == [row]


def test_epochs_that_never_fall_are_plausible() -> None:
    assert doubted([0, 0, 1, 1, 5, 5]) == []


def test_an_epoch_that_falls_is_blamed_on_the_fewest() -> None:
    assert doubted([0, 0, 0, 1024, 0, 1, 1]) == [3]
    assert doubted([4, 4, 4, 0, 4, 5]) == [3]


def test_no_epoch_at_all_is_plausible_anywhere() -> None:
    assert doubted([3, -1, 3, -1]) == []
    assert doubted([-2, 0]) == [0]


def test_an_epoch_must_be_the_one_that_the_broker_noted_for_the_offset() -> None:
    # The broker forgot what was before offset 2.
    sense = LogSense(leader_epochs=((5, 2), (7, 4)))

    assert doubted([1, 3, 5, 5, 7, 7], sense) == []
    assert doubted([1, 3, 5, 6, 7, 8], sense) == [3, 5]
