"""The walk over records: its varints, and that compiled it finds what it finds interpreted."""

from __future__ import annotations

import random
from pathlib import Path

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from analytics.dump.batches.batch_bytes import chain_starts, follow_chain
from analytics.dump.batches.headers import BATCH_HEADER, read_headers
from analytics.dump.records.chunk_reader import (
    BAD_COUNT,
    BAD_RECORD,
    COLUMNS,
    SOUND,
    VARINT,
    VARLONG,
    read_varint,
    walk_records,
)
from analytics.dump.records.raw_records import PADDING
from tests.support.segments import varint

SEGMENT = Path(__file__).parents[2] / (
    "data/dumps/kafka-4.3.1-story/broker-1/__consumer_offsets-32/00000000000000000014.log"
)

LONG = st.integers(-(2**63), 2**63 - 1)
MOSTLY_SHORT = st.one_of(st.integers(-64, 63), st.integers(-64, 63), st.integers(-9000, 9000), LONG)


@given(st.lists(MOSTLY_SHORT, min_size=1, max_size=60))
def test_values_and_the_places_after_them_are_read(values: list[int]) -> None:
    data = memoryview(b"".join(map(varint, values)))

    at, found = 0, []
    for value in values:
        read, after = read_varint(data, at, len(data), VARLONG)
        assert after == at + len(varint(value))
        found.append(read)
        at = after

    assert found == values
    assert at == len(data)


@given(LONG, st.integers(0, 9))
def test_a_varint_that_is_cut_off_ends_beyond_the_end(value: int, kept: int) -> None:
    whole = varint(value)
    kept = min(kept, len(whole) - 1)
    data = memoryview(whole + bytes(16))

    assert read_varint(data, 0, kept, VARLONG) == (0, kept + 1)


def test_a_varint_that_goes_on_too_long_ends_beyond_the_end() -> None:
    data = memoryview(b"\xff" * 6 + bytes(10))

    assert read_varint(data, 0, 16, VARINT) == (0, 17)


def test_nothing_is_read_beyond_the_end() -> None:
    assert read_varint(memoryview(bytes(4)), 5, 4, VARINT) == (0, 5)


def test_compiled_the_walk_finds_what_it_finds_interpreted_whatever_is_damaged() -> None:
    """Interpreted, Python checks every index and no number wraps."""
    whole = np.frombuffer(SEGMENT.read_bytes() + bytes(PADDING), np.uint8)
    start = chain_starts(whole, whole.size - PADDING)
    size = np.diff(start, append=whole.size - PADDING)
    headers = read_headers(whole, start, size, 0)
    seen = set()
    for seed in range(150):
        draw = random.Random(seed)
        data = whole.copy()
        for _ in range(draw.randint(0, 40)):
            # Lengths at their ends are where a walk goes astray.
            at = draw.randrange(data.size - PADDING)
            data[at] = draw.choice([0, 1, 0x7F, 0x80, 0xFE, 0xFF, draw.randrange(256)])
        count = headers.count + np.array([draw.choice([0] * 9 + [-2, 1, 9]) for _ in start])
        batches = np.stack(
            [start + BATCH_HEADER, start + size, count, headers.base_offset, headers.last_offset]
        )
        results = []
        for walk in (walk_records.interpreted, walk_records.compiled):
            records = np.empty((COLUMNS, 2 * int(headers.count.sum())), np.int64)
            outcome = np.empty(start.size, np.int8)
            found = walk(memoryview(data) if not results else data, batches, records, outcome)
            results.append((found, records[:, :found].tolist(), outcome.tolist()))
            seen.update(outcome.tolist())
        assert results[0] == results[1]
    assert seen == {SOUND, BAD_RECORD, BAD_COUNT}


def test_compiled_the_chain_of_batches_is_the_same_too() -> None:
    whole = np.frombuffer(SEGMENT.read_bytes() + bytes(PADDING), np.uint8)
    for seed in range(150):
        draw = random.Random(seed)
        data = whole.copy()
        for _ in range(draw.randint(0, 40)):
            data[draw.randrange(data.size)] = draw.choice([0, 0x80, 0xFF, draw.randrange(256)])
        room = draw.choice([5, 10_000])
        results = []
        for follow in (follow_chain.interpreted, follow_chain.compiled):
            starts = np.empty(room, np.int64)
            found, after = follow(
                memoryview(data) if not results else data, 0, data.size - PADDING, starts
            )
            results.append((after, starts[:found].tolist()))
        assert results[0] == results[1]
