"""Signed varints of every length, one per row."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from analytics.dump.varints import VARINT, VARLONG, read_varints
from tests.support.segments import varint

LONG = st.integers(-(2**63), 2**63 - 1)
MOSTLY_SHORT = st.one_of(st.integers(-64, 63), st.integers(-64, 63), st.integers(-9000, 9000), LONG)


@given(st.lists(st.one_of(LONG, MOSTLY_SHORT), min_size=1, max_size=60))
def test_values_and_the_positions_after_them_are_read(values: list[int]) -> None:
    encoded = [varint(value) for value in values]
    ends = np.cumsum([len(each) for each in encoded])
    data = np.frombuffer(b"".join(encoded) + bytes(VARLONG), np.uint8)

    found, after, endless = read_varints(data, np.append(0, ends[:-1]), VARLONG)

    assert found.tolist() == values
    assert after.tolist() == ends.tolist()
    assert endless is None


def test_a_varint_that_goes_on_too_long_is_marked() -> None:
    data = np.frombuffer(b"\x02" + b"\xff" * 6 + bytes(10), np.uint8)

    found, _, endless = read_varints(data, np.array([0, 1]), VARINT)

    assert endless is not None
    assert endless.tolist() == [False, True]
    assert found[0] == 1


def test_no_rows_give_no_values() -> None:
    found, after, endless = read_varints(np.zeros(16, np.uint8), np.empty(0, np.int64), VARINT)

    assert (found.size, after.size, endless) == (0, 0, None)
