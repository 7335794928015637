"""Thousands of damages at random: nothing raised, nothing undamaged lost, every byte accounted for.

The segments are made (all formats, codecs and kinds of batch) or a broker's own.
"""

from __future__ import annotations

import random
from bisect import bisect_right
from functools import cache
from pathlib import Path

import pytest

from analytics.dump.batches.log_bounds import LogSense
from analytics.dump.records.segment_reader import ReadOptions
from tests.support.segments import Made, Read, Record, joined, positions, random_segment, read_back

REAL = Path(__file__).parents[2] / "data/dumps/kafka-2.0.1-v1/broker-1"
MIXED = "__consumer_offsets-1/00000000000000000000.log"
"""Formats 0 to 2 and four codecs in 30 batches, holes inside wrappers: what a cleaner left."""
SMALL = "__consumer_offsets-8/00000000000000000000.log"
"""Formats 1 and 2 and three codecs in 8 batches."""

SEEDS = 2000
MANY_SEEDS = 20_000


@cache
def real_segment(name: str) -> list[Made]:
    data = (REAL / name).read_bytes()
    read = read_back(data)
    assert not read.damages
    made = []
    for each in read.batches:
        start, end = each["position"], each["position"] + each["size"]
        held = (
            record
            for record in read.records
            if each["base_offset"] <= record.offset <= each["last_offset"]
        )
        made.append(Made(data[start:end], tuple(held), each["last_offset"]))
    assert joined(made) == data
    return made


@cache
def made_segment(seed: int) -> list[Made]:
    return random_segment(seed, first=seed * 3)


def sense_of(made: list[Made]) -> LogSense:
    first = made[0].records[0].offset if made[0].records else 0
    return LogSense(min(first, 3 * (first // 3)), made[-1].last_offset + 1)


def check(made: list[Made], touched: set[int], read: Read, *, exact: bool = True) -> None:
    """All records of untouched batches are there, in order, and (exactly) no others."""
    assert read.summary
    assert read.summary.reconciles
    found = set(read.records)
    untouched = [
        record for row, each in enumerate(made) if row not in touched for record in each.records
    ]
    assert not [record for record in untouched if record not in found]
    if exact:
        known = {record for each in made for record in each.records}
        assert not [record for record in read.records if record not in known]
        offsets = [each.offset for each in read.records]
        assert offsets == sorted(set(offsets))


def flip(data: bytearray, made: list[Made], draw: random.Random) -> int:
    """Flip a bit, half of the time in a header; return which batch it is in."""
    edges = positions(made)
    at = draw.randrange(len(data))
    if draw.random() < 0.5:
        at = min(draw.choice(edges[:-1]) + draw.randrange(61), len(data) - 1)
    data[at] ^= 1 << draw.randrange(8)
    return bisect_right(edges, at) - 1


def one_flip(made: list[Made], seed: int) -> None:
    draw = random.Random(seed)
    data = bytearray(joined(made))
    touched = {flip(data, made, draw)}
    check(made, touched, read_back(bytes(data), ReadOptions(sense=sense_of(made))))


def test_a_flipped_bit_costs_at_most_its_own_batch() -> None:
    for seed in range(SEEDS):
        one_flip(made_segment(seed % 100), seed)


def test_a_flipped_bit_costs_at_most_its_own_batch_in_a_broker_s_segment() -> None:
    # Holes hide what a flip in an offset did: there, only what is lost can be judged.
    made = real_segment(MIXED)
    for seed in range(SEEDS // 4):
        draw = random.Random(seed)
        data = bytearray(joined(made))
        touched = {flip(data, made, draw)}
        check(made, touched, read_back(bytes(data), ReadOptions(sense=LogSense(0))), exact=False)


@pytest.mark.long
def test_many_more_flipped_bits_cost_at_most_their_own_batch() -> None:
    for seed in range(SEEDS, MANY_SEEDS):
        one_flip(made_segment(seed % 400), seed)


def test_several_flipped_bits_cost_at_most_their_batches() -> None:
    for seed in range(SEEDS // 4):
        made = made_segment(seed % 100)
        draw = random.Random(seed)
        data = bytearray(joined(made))
        edges = positions(made)
        touched = set()
        for _ in range(draw.randint(2, 6)):
            at = draw.randrange(len(data))
            row = bisect_right(edges, at) - 1
            # Two wrong offsets may agree with each other against one that is right.
            if at - edges[row] >= 8:
                data[at] ^= 1 << draw.randrange(8)
                touched.add(row)
        check(made, touched, read_back(bytes(data), ReadOptions(sense=sense_of(made))))


def test_stretches_of_noise_cost_at_most_the_batches_they_touch() -> None:
    for seed in range(SEEDS // 4):
        made = made_segment(seed % 100)
        draw = random.Random(seed)
        data = bytearray(joined(made))
        start = draw.randrange(len(data))
        size = min(draw.choice((1, 8, 61, 512, 4096)), len(data) - start)
        data[start : start + size] = draw.choice((bytes(size), draw.randbytes(size)))
        edges = positions(made)
        touched = set(range(bisect_right(edges, start) - 1, bisect_right(edges, start + size - 1)))
        check(made, touched, read_back(bytes(data), ReadOptions(sense=sense_of(made))))


def test_bytes_put_in_or_taken_out_cost_at_most_the_batch_they_are_in() -> None:
    for seed in range(SEEDS // 4):
        made = made_segment(seed % 100)
        draw = random.Random(seed)
        data = bytearray(joined(made))
        at = draw.randrange(len(data))
        size = draw.choice((1, 2, 12, 61, 300))
        edges = positions(made)
        if draw.random() < 0.5:
            data[at:at] = draw.randbytes(size)
            touched = {bisect_right(edges, at) - 1}
        else:
            del data[at : at + size]
            last = min(at + size, edges[-1]) - 1
            touched = set(range(bisect_right(edges, at) - 1, bisect_right(edges, last)))
        check(made, touched, read_back(bytes(data), ReadOptions(sense=sense_of(made))))


def test_batches_that_come_twice_are_read_once() -> None:
    for seed in range(SEEDS // 8):
        made = made_segment(seed % 100)
        row = random.Random(seed).randrange(len(made))
        twice = [*made[: row + 1], *made[row:]]

        read = read_back(joined(twice), ReadOptions(sense=sense_of(made)))

        check(made, set(), read)
        assert bool(read.damages) == bool(made[row].data)


def test_batches_that_are_missing_cost_themselves_only() -> None:
    for seed in range(SEEDS // 8):
        made = made_segment(seed % 100)
        row = random.Random(seed).randrange(len(made))
        sense = LogSense(sense_of(made).base_offset, sense_of(made).end_offset, complete_from=0)

        read = read_back(joined([*made[:row], *made[row + 1 :]]), ReadOptions(sense=sense))

        check(made, {row}, read)
        assert not read.damages


def test_batches_in_the_wrong_order_are_read_as_far_as_they_are_in_order() -> None:
    made = [each for each in made_segment(1) if each.records]
    swapped = [*made[:3], made[4], made[3], *made[5:]]

    read = read_back(joined(swapped), ReadOptions(sense=sense_of(made)))

    check(made, {3, 4}, read)
    assert len(read.damages) == 1


def test_a_segment_cut_off_anywhere_gives_the_batches_before_the_cut() -> None:
    made = real_segment(SMALL)
    data, edges = joined(made), positions(made)
    for size in range(len(data)):
        read = read_back(data[:size], ReadOptions(sense=LogSense(0)))
        whole = bisect_right(edges, size) - 1

        assert read.records == records_of(made[:whole])
        assert not read.damages
        assert read.summary
        assert read.summary.reconciles
        assert read.summary.bytes_trailing == size - edges[whole]


def records_of(made: list[Made]) -> list[Record]:
    return [record for each in made for record in each.records]


def test_noise_alone_is_damage_from_end_to_end() -> None:
    for seed in range(100):
        data = random.Random(seed).randbytes(seed * 7)

        read = read_back(data)

        assert not read.records
        assert read.summary
        assert read.summary.reconciles


def test_without_checksums_nothing_is_raised_either() -> None:
    for seed in range(SEEDS // 4):
        made = made_segment(seed % 100)
        data = bytearray(joined(made))
        draw = random.Random(seed)
        for _ in range(3):
            flip(data, made, draw)

        read = read_back(bytes(data), ReadOptions(check_crc=False))

        assert read.summary
        assert read.summary.reconciles
