"""Messages of formats 0 and 1, alone and in compressed wrappers, among batches of format 2."""

from __future__ import annotations

import pytest

from analytics.dump.batches.batch_bytes import DamageReason
from analytics.dump.batches.log_bounds import LogSense
from analytics.dump.records.segment_reader import ReadOptions
from tests.support.segments import (
    GZIP,
    LEGACY_CODECS,
    LZ4,
    NOW,
    SNAPPY,
    ZSTD,
    Made,
    Record,
    batch,
    compress,
    joined,
    message,
    messages,
    read_back,
    records,
    wrapper,
)

COMPRESSED = LEGACY_CODECS[1:]


@pytest.mark.parametrize("magic", [0, 1])
def test_a_message_alone_is_a_batch_of_one_record(magic: int) -> None:
    made = messages(records(7, 4), magic)

    read = read_back(joined(made))

    assert read.records == [each.records[0] for each in made]
    assert [each["count"] for each in read.batches] == [1, 1, 1, 1]
    assert [each["leader_epoch"] for each in read.batches] == [-1] * 4


def test_format_0_has_no_timestamps() -> None:
    read = read_back(joined(messages(records(0, 2), 0)))

    assert [each.timestamp for each in read.records] == [-1, -1]
    assert [each["timestamp_type"] for each in read.batches] == [-1, -1]


@pytest.mark.parametrize("magic", [0, 1])
@pytest.mark.parametrize("codec", COMPRESSED)
def test_a_wrapper_holds_messages(magic: int, codec: int) -> None:
    made = wrapper(records(20, 9), magic, codec)

    read = read_back(made.data)

    assert read.records == list(made.records)
    (found,) = read.batches
    assert (found["base_offset"], found["last_offset"], found["count"]) == (20, 28, 9)


@pytest.mark.parametrize("magic", [0, 1])
def test_a_wrapper_keeps_the_holes_that_compaction_left(magic: int) -> None:
    held = [each for each in records(488, 20) if each.offset % 5]
    made = wrapper(held, magic, GZIP, first=485)

    assert [each.offset for each in read_back(made.data).records] == [each.offset for each in held]


def test_a_broker_s_timestamp_on_a_wrapper_is_that_of_its_messages() -> None:
    made = wrapper(records(0, 3), 1, SNAPPY, append_time=NOW + 50)

    assert [each.timestamp for each in read_back(made.data).records] == [NOW + 50] * 3


def test_a_wrapper_that_no_broker_numbered_counts_from_0() -> None:
    content = b"".join(message(Record(n, NOW, b"k", b"v"), 1) for n in range(3))
    data = message(Record(0, NOW, None, compress(GZIP, content)), 1, GZIP)

    assert [each.offset for each in read_back(data).records] == [0, 1, 2]


def test_formats_and_codecs_mix_in_one_segment_and_order_is_kept() -> None:
    made = [
        wrapper(records(0, 3), 0, LZ4),
        *messages(records(3, 2), 0),
        batch(records(5, 4)),
        wrapper(records(9, 2), 1, SNAPPY),
        *messages(records(11, 2), 1),
        batch(records(13, 60)),
        wrapper(records(73, 30), 1, GZIP),
    ]

    read = read_back(joined(made))

    assert read.records == [record for each in made for record in each.records]
    assert read.summary
    assert read.summary.magics == {0: 3, 1: 4, 2: 2}


def test_order_is_kept_where_there_is_no_batch_of_format_2() -> None:
    made = [
        wrapper(records(0, 3), 1, LZ4),
        *messages(records(3, 2), 0),
        wrapper(records(5, 2), 0, GZIP),
        *messages(records(7, 1), 1),
    ]

    assert [each.offset for each in read_back(joined(made)).records] == list(range(8))


def _inner(content: bytes, magic: int = 1, codec: int = GZIP) -> bytes:
    return message(Record(5, NOW, None, compress(codec, content)), magic, codec)


def _broken_inner() -> bytes:
    inner = bytearray(message(Record(0, NOW, b"k", b"value"), 1))
    inner[-1] ^= 1
    return bytes(inner)


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        pytest.param(_inner(b""), DamageReason.BAD_RECORD_COUNT, id="nothing in it"),
        pytest.param(_inner(_broken_inner()), DamageReason.BAD_CRC, id="checksum of a message"),
        pytest.param(
            _inner(message(Record(0, NOW, b"k", b"v"), 0)), DamageReason.BAD_RECORD, id="format"
        ),
        pytest.param(
            _inner(_inner(message(Record(0, NOW, b"k", b"v"), 1))),
            DamageReason.BAD_RECORD,
            id="a wrapper in a wrapper",
        ),
        pytest.param(
            _inner(message(Record(9, NOW, b"k", b"v"), 1)), DamageReason.BAD_RECORD, id="offset"
        ),
        pytest.param(
            _inner(message(Record(0, NOW, b"k", b"v"), 1)[:-1]), DamageReason.BAD_RECORD, id="end"
        ),
        pytest.param(
            message(Record(5, NOW, b"k", None), 1, GZIP), DamageReason.BAD_RECORD, id="null"
        ),
        pytest.param(
            message(Record(5, NOW, b"k", b"no stream"), 1, GZIP),
            DamageReason.BAD_COMPRESSION,
            id="no stream",
        ),
        pytest.param(
            message(Record(5, NOW, None, compress(ZSTD, b"")), 1, ZSTD),
            DamageReason.BAD_RECORD_COUNT,
            id="zstd with nothing in it",
        ),
    ],
)
def test_a_wrapper_that_makes_no_sense_is_damage_and_its_neighbours_are_read(
    data: bytes, reason: DamageReason
) -> None:
    before, after = messages(records(4, 1), 1), messages(records(6, 1), 1)

    read = read_back(joined([*before, Made(data), *after]))

    assert [each.offset for each in read.records] == [4, 6]
    assert [each.reason for each in read.damages] == [reason]


def test_a_message_whose_lengths_do_not_add_up_is_damage() -> None:
    import zlib  # noqa: PLC0415

    data = bytearray(message(Record(5, NOW, b"key", b"value"), 1))
    data[29] = 2  # the key's length
    data[12:16] = zlib.crc32(data[16:]).to_bytes(4)

    read = read_back(joined([*messages(records(4, 1), 1), Made(bytes(data))]))

    assert [each.offset for each in read.records] == [4]
    assert [(each.reason, each.records) for each in read.damages] == [(DamageReason.BAD_RECORD, 1)]


@pytest.mark.parametrize("offset", [1, 4, 6, 7, 13, 21, 2**40])
def test_a_wrapper_with_a_wrong_offset_costs_no_neighbour(offset: int) -> None:
    first, second, third = (wrapper(records(start, 5), 1, GZIP) for start in (0, 5, 10))
    wrong = Made(offset.to_bytes(8) + second.data[8:])
    options = ReadOptions(sense=LogSense(0, 15))

    read = read_back(joined([first, wrong, third]), options)

    assert read.records == [*first.records, *third.records]
    assert [each.reason for each in read.damages] == [DamageReason.IMPLAUSIBLE_OFFSET]
    # An offset smaller than the last relative one leaves the messages without any.
    assert read.damages[0].records == (5 if offset >= 4 else 0)


def test_a_wrapper_s_own_offset_means_nothing_in_format_0() -> None:
    first, second = (wrapper(records(start, 5), 0, GZIP) for start in (0, 5))
    wrong = Made((77).to_bytes(8) + first.data[8:])

    read = read_back(joined([wrong, second]), ReadOptions(sense=LogSense(0, 10)))

    assert read.records == [*first.records, *second.records]
    assert not read.damages
