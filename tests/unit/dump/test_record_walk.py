"""Signed varints of every length: what the walk over records goes by."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from analytics.dump.record_walk import VARINT, VARLONG, read_varint
from tests.support.segments import varint

LONG = st.integers(-(2**63), 2**63 - 1)
MOSTLY_SHORT = st.one_of(st.integers(-64, 63), st.integers(-64, 63), st.integers(-9000, 9000), LONG)


@given(st.lists(MOSTLY_SHORT, min_size=1, max_size=60))
def test_values_and_the_places_after_them_are_read(values: list[int]) -> None:
    data = np.frombuffer(b"".join(map(varint, values)), np.uint8)

    at, found = 0, []
    for value in values:
        read, after = read_varint(data, at, data.size, VARLONG)
        assert after == at + len(varint(value))
        found.append(read)
        at = after

    assert found == values
    assert at == data.size


@given(LONG, st.integers(0, 9))
def test_a_varint_that_is_cut_off_ends_beyond_the_end(value: int, kept: int) -> None:
    whole = varint(value)
    kept = min(kept, len(whole) - 1)
    data = np.frombuffer(whole + bytes(16), np.uint8)

    assert read_varint(data, 0, kept, VARLONG) == (0, kept + 1)


def test_a_varint_that_goes_on_too_long_ends_beyond_the_end() -> None:
    data = np.frombuffer(b"\xff" * 6 + bytes(10), np.uint8)

    assert read_varint(data, 0, 16, VARINT) == (0, 17)


def test_nothing_is_read_beyond_the_end() -> None:
    data = np.zeros(4, np.uint8)

    assert read_varint(data, 5, 4, VARINT) == (0, 5)
