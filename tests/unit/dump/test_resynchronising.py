"""Where the chain of lengths is broken, reading goes on at the next batch that checks."""

from __future__ import annotations

import random

import pytest

from analytics.dump.batches.batch_bytes import DamageReason, TailKind
from analytics.dump.batches.log_bounds import LogSense
from analytics.dump.records.segment_reader import ReadOptions
from tests.support.segments import (
    GZIP,
    LZ4,
    Header,
    Made,
    Read,
    batch,
    joined,
    messages,
    read_back,
    records,
    seal,
    wrapper,
)

THREE = [batch(records(0, 3)), batch(records(3, 4)), batch(records(7, 2))]
FIRST, SECOND, THIRD = (each.data for each in THREE)
START, END = len(FIRST), len(FIRST) + len(SECOND)


def offsets(read: Read) -> list[int]:
    assert read.summary
    assert read.summary.reconciles
    return [each.offset for each in read.records]


def found(read: Read) -> list[tuple[int, int, DamageReason]]:
    return [(each.position, each.size, each.reason) for each in read.damages]


def with_length(length: int) -> bytes:
    return SECOND[:8] + length.to_bytes(4, signed=True) + SECOND[12:]


@pytest.mark.parametrize(
    "length",
    [-1, -(2**31), 0, 1, 13, 14, 48, 49, 60, len(SECOND) + len(THIRD) - 12, 2**31 - 1],
)
def test_a_broken_length_costs_its_batch_only(length: int) -> None:
    read = read_back(FIRST + with_length(length) + THIRD)

    assert offsets(read) == [0, 1, 2, 7, 8]
    assert sum(each.size for each in read.damages) == len(SECOND)
    assert {each.reason for each in read.damages} <= {
        DamageReason.BAD_LENGTH,
        DamageReason.BAD_CRC,
        DamageReason.GARBAGE_BETWEEN_BATCHES,
    }


def test_a_length_that_leads_just_past_an_undamaged_neighbour_costs_its_batch_only() -> None:
    same = [batch(records(start, 4)) for start in (60, 64, 68, 72)]
    assert len({len(each.data) for each in same[1:3]}) >= 1
    first = same[0].data
    jump = len(first) + len(same[1].data) - 12
    data = first[:8] + jump.to_bytes(4) + first[12:]

    read = read_back(data + joined(same[1:]))

    assert offsets(read) == list(range(64, 76))
    assert found(read) == [(0, len(first), DamageReason.BAD_LENGTH)]


def test_without_checksums_a_broken_length_is_found_too() -> None:
    read = read_back(FIRST + with_length(60) + THIRD, ReadOptions(check_crc=False))

    assert offsets(read) == [0, 1, 2, 7, 8]


def test_a_flipped_bit_in_the_records_is_a_bad_checksum_of_that_batch() -> None:
    data = bytearray(FIRST + SECOND + THIRD)
    data[END - 3] ^= 4

    read = read_back(bytes(data))

    assert offsets(read) == [0, 1, 2, 7, 8]
    assert found(read) == [(START, len(SECOND), DamageReason.BAD_CRC)]
    assert read.damages[0].offset == 3
    assert read.damages[0].content == bytes(data[START:END])


def test_an_unknown_format_number_is_said() -> None:
    data = bytearray(FIRST + SECOND + THIRD)
    data[START + 16] = 3

    assert found(read_back(bytes(data))) == [(START, len(SECOND), DamageReason.BAD_MAGIC)]


@pytest.mark.parametrize("size", [1, 16, 17, 61, 5000])
@pytest.mark.parametrize("kind", ["random", "zeros", "text"])
def test_bytes_between_batches_are_passed_over(size: int, kind: str) -> None:
    noise = {
        "random": random.Random(size).randbytes(size),
        "zeros": bytes(size),
        "text": (b"2026-11-21 broker log line\n" * 200)[:size],
    }[kind]

    read = read_back(FIRST + noise + SECOND)

    assert offsets(read) == [0, 1, 2, 3, 4, 5, 6]
    assert sum(each.size for each in read.damages) == size


@pytest.mark.parametrize("magic", [0, 1])
def test_messages_of_old_formats_are_found_again(magic: int) -> None:
    made = [*messages(records(0, 3), magic), wrapper(records(3, 4), magic, GZIP)]

    read = read_back(b"noise" * 9 + joined(made))

    assert offsets(read) == [0, 1, 2, 3, 4, 5, 6]


def test_a_batch_larger_than_what_is_looked_at_at_once_is_read() -> None:
    large = batch([records(3, 1)[0]._replace(value=b"x" * (3 << 20))])

    read = read_back(FIRST + large.data + batch(records(4, 1)).data)

    assert offsets(read) == [0, 1, 2, 3, 4]


def test_a_damaged_batch_larger_than_that_costs_itself_only() -> None:
    large = bytearray(batch([records(3, 1)[0]._replace(value=b"x" * (3 << 20))]).data)
    large[2 << 20] ^= 1

    read = read_back(FIRST + bytes(large) + batch(records(4, 1)).data)

    assert offsets(read) == [0, 1, 2, 4]
    assert found(read) == [(START, len(large), DamageReason.BAD_CRC)]


def test_a_claim_of_two_gibibytes_hides_no_batch() -> None:
    claim = (3).to_bytes(8) + (2**31 - 1).to_bytes(4) + b"\0\0\0\0\2" + bytes(44)

    read = read_back(FIRST + claim + THIRD)

    assert offsets(read) == [0, 1, 2, 7, 8]
    assert found(read) == [(START, len(claim), DamageReason.BAD_LENGTH)]


def test_a_batch_in_the_payload_of_a_damaged_one_is_not_taken_for_the_log_s() -> None:
    # A valid batch whose offsets would fit nowhere else, as a record's value.
    value = batch(records(3, 1)).data
    held = [each._replace(value=value) for each in records(3, 4)]
    outer = bytearray(batch(held).data)
    outer[-2] ^= 1

    read = read_back(FIRST + bytes(outer) + THIRD)

    assert offsets(read) == [0, 1, 2, 7, 8]
    assert found(read) == [(START, len(outer), DamageReason.BAD_CRC)]


def test_messages_stored_plainly_in_a_damaged_wrapper_are_not_taken_for_the_log_s() -> None:
    inner = joined(messages(records(3, 4), 1))
    held = records(3, 4)
    made = bytearray(wrapper(held, 1, LZ4).data)
    assert inner
    made[13] ^= 1

    read = read_back(joined([*messages(records(0, 3), 1), Made(bytes(made)), THREE[2]]))

    assert offsets(read) == [0, 1, 2, 7, 8]


def test_zeros_at_the_end_are_a_preallocated_tail() -> None:
    read = read_back(FIRST + bytes(10_000))

    assert read.summary
    assert read.summary.tail
    assert read.summary.tail.kind is TailKind.PREALLOCATED
    assert read.summary.bytes_trailing == 10_000
    assert not read.damages


def test_a_damaged_batch_before_a_preallocated_tail_is_told_from_it() -> None:
    data = bytearray(FIRST + SECOND)
    data[-1] = 9

    read = read_back(bytes(data) + bytes(10_000))

    assert offsets(read) == [0, 1, 2]
    assert found(read) == [(START, len(SECOND), DamageReason.BAD_CRC)]
    assert read.summary
    assert read.summary.bytes_trailing == 10_000


@pytest.mark.parametrize("kept", [1, 16, 17, 60, 61, len(SECOND) - 1])
def test_a_last_batch_that_was_not_written_to_its_end_is_a_truncated_tail(kept: int) -> None:
    read = read_back(FIRST + SECOND[:kept])

    assert offsets(read) == [0, 1, 2]
    assert not read.damages
    assert read.summary
    assert read.summary.tail
    assert (read.summary.tail.kind, read.summary.tail.size) == (TailKind.TRUNCATED, kept)


def test_a_batch_that_ends_in_the_next_slice_is_no_truncated_tail() -> None:
    options = ReadOptions(to_position=START + 80)

    read = read_back(FIRST + SECOND + THIRD, options)

    assert offsets(read) == [0, 1, 2]
    assert found(read) == [(START, 80, DamageReason.BAD_LENGTH)]
    assert read.summary
    assert read.summary.tail is None


def test_a_sound_batch_whose_offset_cannot_be_true_is_damage_with_its_records() -> None:
    moved = seal(2**20, Header(last_offset=2**20), b"")
    second = (2**20).to_bytes(8) + SECOND[8:]
    assert moved

    read = read_back(FIRST + second + THIRD)

    assert offsets(read) == [0, 1, 2, 7, 8]
    (damage,) = read.damages
    assert damage.reason is DamageReason.IMPLAUSIBLE_OFFSET
    assert (damage.offset, damage.records) == (2**20, 4)


def test_a_leader_epoch_that_cannot_be_true_is_dropped_and_its_records_kept() -> None:
    second = SECOND[:12] + (2**30).to_bytes(4) + SECOND[16:]

    read = read_back(FIRST + second + THIRD, ReadOptions(sense=LogSense(0)))

    assert offsets(read) == list(range(9))
    assert [each["leader_epoch"] for each in read.batches] == [0, -1, 0]
    assert read.summary
    assert read.summary.implausible_epochs == 1
