"""Partitions of groups have one number each, compiled or not, whatever table they come in."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from analytics.questions.lag.commits.commit_keys import CommitKeys
from analytics.questions.lag.commits.key_fold import PARTS, number_keys

SCHEMA = pa.schema([("group_id", pa.string()), ("topic", pa.string()), ("partition", pa.int32())])


@given(
    rows=st.lists(
        st.tuples(
            st.sampled_from(["g", "", "ä"]), st.sampled_from(["t", "u"]), st.integers(0, 300)
        ),
        max_size=200,
    ),
    cut=st.integers(1, 70),
    is_encoded=st.booleans(),
)
def test_numbers_are_given_in_the_order_in_which_partitions_are_seen(
    rows: list[tuple[str, str, int]], cut: int, *, is_encoded: bool
) -> None:
    expected: dict[tuple[str, str, int], int] = {}
    keys = CommitKeys()
    for start in range(0, len(rows), cut):
        part = rows[start : start + cut]
        table = pa.Table.from_pylist(
            [dict(zip(SCHEMA.names, row, strict=True)) for row in part], SCHEMA
        )
        if is_encoded:
            for place in (0, 1):
                encoded = table.column(place).dictionary_encode()
                table = table.set_column(place, SCHEMA.names[place], encoded)
        numbers = keys.numbers_of(table).tolist()
        assert numbers == [expected.setdefault(row, len(expected)) for row in part]
    assert [tuple(row.values()) for row in keys.named().to_pylist()] == list(expected)


def test_compiled_and_interpreted_loops_use_the_same_slots() -> None:
    random = np.random.default_rng(3)
    parts = random.integers(0, [1 << 20, 1 << 20, 1 << 15], (2000, PARTS)).reshape(-1)
    found = []
    for loop in (number_keys.compiled, number_keys.interpreted):
        kept, slots = np.zeros(2000 * PARTS, np.int64), np.zeros(1 << 12, np.int64)
        numbers = np.zeros(2000, np.int64)
        # Numbers of Python do not wrap: the slots are equal where nothing overflows.
        given_parts = parts if loop is number_keys.compiled else parts.data
        known = loop(given_parts, 0, kept, slots, numbers)
        found.append((known, numbers.tolist(), slots.tolist()))
    assert found[0] == found[1]
