"""Pieces come in their order, whoever makes them; one more than is taken is made, and no other."""

from __future__ import annotations

from collections.abc import Iterator
from threading import Event

import pytest

from analytics.engine.part_runs import one_ahead


def test_all_pieces_come_in_their_order() -> None:
    assert list(one_ahead(range(100))) == list(range(100))
    assert list(one_ahead([])) == []
    assert list(one_ahead([None, 0, None])) == [None, 0, None]


def test_the_next_piece_is_made_while_one_is_looked_at() -> None:
    is_next_made = Event()

    def pieces() -> Iterator[int]:
        yield 0
        is_next_made.set()
        yield 1

    found = one_ahead(pieces())
    assert next(found) == 0
    assert is_next_made.wait(60)
    assert list(found) == [1]


def test_no_more_is_made_than_one_that_is_not_taken() -> None:
    made: list[int] = []
    found = one_ahead(made.append(number) or number for number in range(100))
    assert [next(found), next(found)] == [0, 1]
    found.close()  # type: ignore[attr-defined]
    assert made == [0, 1, 2]


def test_what_fails_is_raised_behind_the_pieces_before_it() -> None:
    def pieces() -> Iterator[int]:
        yield 0
        raise ValueError("damaged")

    found = one_ahead(pieces())
    assert next(found) == 0
    with pytest.raises(ValueError, match="damaged"):
        next(found)
