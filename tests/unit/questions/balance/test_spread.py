"""How far sizes are from even."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from analytics.questions.balance.facts import (
    band,
    best_spread,
    is_even,
    moves_to_even,
    score,
    spread_of,
)
from schemas.evaluation_rules import balance_rules
from tests.support.balance_cases import Members, case, small_groups
from tests.support.plain_balance import fewest_moves, most_even

SIZES = st.lists(st.integers(0, 12), min_size=1, max_size=6)


@pytest.mark.parametrize(
    ("sizes", "expected"),
    [
        ([7, 7], 100),
        ([4, 3], 100),
        ([1, 1, 0, 0, 0], 100),  # as even as two partitions allow
        ([3, 11], 100 * (1 - 4 / 7)),  # four of the seven that could be at the wrong member
        ([14, 0], 0),
        ([2, 1, 0], 50),
        ([5], 100),
        ([0, 0], 100),
    ],
)
def test_the_score_counts_moves_to_an_even_spread(sizes: list[int], expected: float) -> None:
    assert score(sizes, sum(sizes), sum(sizes)) == pytest.approx(expected)


def test_partitions_without_an_owner_lower_the_score() -> None:
    assert score([1, 1, 0, 0, 0], 2, 5) == pytest.approx(40)
    assert score([0, 0], 0, 5) == 0


@pytest.mark.parametrize(
    ("mean", "expected"),
    # Nine per cent, or what whole partitions allow.
    [(7, (7, 7)), (0.4, (0, 1)), (100, (91, 109)), (1.5, (1, 2)), (0, (0, 0)), (50, (46, 54))],
)
def test_the_band_around_the_mean(mean: float, expected: tuple[int, int]) -> None:
    assert band(mean, balance_rules()) == expected


def test_within_the_band_is_even_unless_somebody_is_idle() -> None:
    assert is_even(spread_of([91, 100, 109]), balance_rules())
    assert not is_even(spread_of([90, 100, 110]), balance_rules())
    assert not is_even(spread_of([1, 1, 0]), balance_rules())


@given(SIZES)
def test_moves_to_even_are_the_fewest(sizes: list[int]) -> None:
    assert moves_to_even(sizes) == fewest_moves(sizes)


@given(SIZES)
def test_a_score_lies_between_0_and_100_which_only_even_sizes_have(sizes: list[int]) -> None:
    reached = score(sizes, 1, 1)
    assert 0 <= reached <= 100
    assert (reached == 100) == (max(sizes) - min(sizes) <= 1 or len(sizes) == 1)


@given(small_groups())
def test_the_best_spread_is_that_of_the_best_of_all_assignments(
    group: tuple[dict[str, int], dict[str, frozenset[str]]],
) -> None:
    topics, wants = group
    best = best_spread(case(topics, {m: (" ".join(w), {}) for m, w in wants.items()}).group)
    assert best.sizes == most_even(topics, wants)
    assert best.is_certain


def test_chains_of_hand_overs_are_followed() -> None:
    """`m` gets room for b only after `n` took c: no single move would do."""
    wanted: Members = {"k": ("a", {}), "l": ("a b", {}), "m": ("b c", {}), "n": ("c", {})}
    assert best_spread(case({"a": 6, "b": 1, "c": 1}, wanted).group).sizes == (1, 1, 3, 3)


def test_a_thousand_members_that_all_want_something_else_are_judged_in_seconds() -> None:
    topics = {f"t{number}": 10 for number in range(1000)}
    members: Members = {f"m{n}": (f"t{n} t{(n + 1) % 1000}", {}) for n in range(1000)}
    best = best_spread(case(topics, members).group)
    assert sum(best.sizes) == 10_000
    assert math.isclose(best.sizes[0], 10)
