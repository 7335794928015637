"""A test of what is drawn is called as often as it says, and fails where an example does."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import strategies as st

from tests.support.examples import examples


def cases_of(test: Any) -> list[Any]:
    (mark,) = (each for each in test.pytestmark if each.args[0] == "max_examples")
    return list(mark.args[1])


def test_the_few_are_quick_and_the_many_are_long() -> None:
    @examples(2, 9, number=st.integers())
    def test(number: int) -> None: ...

    few, many = cases_of(test)
    assert few == 2
    assert many.values == (9,)
    assert [each.name for each in many.marks] == ["long"]


@pytest.mark.parametrize("max_examples", [2, 9])
def test_so_many_examples_are_drawn_beside_what_is_given(max_examples: int) -> None:
    seen: list[tuple[str, int]] = []

    @examples(2, 9, number=st.integers())
    def test(name: str, number: int) -> None:
        seen.append((name, number))

    test(max_examples=max_examples, name="a")
    assert len(seen) == max_examples
    assert {name for name, _ in seen} == {"a"}


def test_an_example_that_fails_is_a_failure() -> None:
    @examples(50, 100, number=st.integers(0, 3))
    def test(number: int) -> None:
        assert number < 3

    with pytest.raises(AssertionError):
        test(max_examples=50)


def test_marks_of_a_test_stay() -> None:
    @examples(2, 9, number=st.integers())
    @pytest.mark.parametrize("name", ["a"])
    def test(name: str, number: int) -> None: ...

    assert sorted(each.args[0] for each in test.pytestmark) == ["max_examples", "name"]
