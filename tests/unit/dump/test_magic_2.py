"""Batches of message format 2: what is read is what a broker would read."""

from __future__ import annotations

import struct

import pytest

from tests.support.segments import (
    ABORT,
    CODECS,
    COMMIT,
    LEADER_CHANGE,
    NOW,
    Header,
    Record,
    batch,
    control_batch,
    empty_batch,
    joined,
    read_back,
    records,
)

HEADERS = ((b"trace", b"1"), (b"", None), (b"x" * 200, b"y" * 300))


@pytest.mark.parametrize("codec", CODECS)
@pytest.mark.parametrize("number", [1, 2, 47, 48, 49, 1000])
def test_records_come_back_in_every_codec_and_number(codec: int, number: int) -> None:
    made = batch(records(100, number), Header(codec=codec))

    read = read_back(made.data)

    assert read.records == list(made.records)
    assert not read.damages


def test_the_header_is_given_field_by_field() -> None:
    header = Header(
        base_offset=95,
        last_offset=140,
        leader_epoch=7,
        producer_id=12,
        producer_epoch=3,
        transactional=True,
    )
    made = batch(records(100, 3), header)

    (found,) = read_back(made.data).batches

    assert found == {
        "position": 0,
        "size": len(made.data),
        "magic": 2,
        "base_offset": 95,
        "last_offset": 140,
        "leader_epoch": 7,
        "attributes": 0x10,
        "codec": 0,
        "count": 3,
        "producer_id": 12,
        "producer_epoch": 3,
        "is_transactional": True,
        "is_control": False,
        "base_timestamp": NOW,
        "max_timestamp": NOW + 2,
        "crc": struct.unpack_from(">I", made.data, 17)[0],
        "delete_horizon": -1,
        "timestamp_type": 0,
    }


def test_offsets_keep_the_holes_that_compaction_left() -> None:
    made = batch(records(10, 5, step=3), Header(base_offset=2, last_offset=40))

    assert [each.offset for each in read_back(made.data).records] == [10, 13, 16, 19, 22]


def test_a_broker_s_timestamp_is_that_of_every_record() -> None:
    made = batch(records(0, 3), Header(append_time=NOW + 99))

    read = read_back(made.data)

    assert [each.timestamp for each in read.records] == [NOW + 99] * 3
    assert read.batches[0]["timestamp_type"] == 1


def test_with_a_delete_horizon_timestamps_are_relative_to_it() -> None:
    made = batch(records(0, 3), Header(delete_horizon=NOW + 86_400_000))

    read = read_back(made.data)

    assert [each.timestamp for each in read.records] == [NOW, NOW + 1, NOW + 2]
    assert read.batches[0]["delete_horizon"] == NOW + 86_400_000


@pytest.mark.parametrize("timestamp", [-1, 0, NOW, 2**63 - 1, -(2**63)])
def test_any_timestamp_of_64_bits_is_read(timestamp: int) -> None:
    held = [Record(0, timestamp, b"k", b"v")]
    # The delta takes ten bytes; sums wrap as they do in Java.
    made = batch(held, Header(base_timestamp=0, max_timestamp=0))

    assert read_back(made.data).records == held


def test_an_empty_batch_has_no_records_and_counts() -> None:
    made = [batch(records(0, 2)), empty_batch(2, 9), batch(records(10, 1))]

    read = read_back(joined(made))

    assert [each.offset for each in read.records] == [0, 1, 10]
    assert [each["count"] for each in read.batches] == [2, 0, 1]
    assert not read.damages


def test_null_and_empty_are_not_the_same() -> None:
    held = [Record(0, NOW, b"", b""), Record(1, NOW, None, None), Record(2, NOW, b"k", None)]

    assert read_back(batch(held).data).records == held


@pytest.mark.parametrize("number", [1, 3, 60])
def test_record_headers_are_passed_over(number: int) -> None:
    made = batch(records(0, number), headers=HEADERS)

    read = read_back(made.data)

    assert read.records == list(made.records)


def test_a_control_batch_may_hold_several_records() -> None:
    made = [control_batch(0, [COMMIT]), control_batch(1, [LEADER_CHANGE, ABORT, 5])]

    read = read_back(joined(made))

    assert [each.key for each in read.records] == [
        b"\0\0\0\x01",
        b"\0\0\0\x02",
        b"\0\0\0\0",
        b"\0\0\0\x05",
    ]
    assert [each["is_control"] for each in read.batches] == [True, True]


def test_keys_and_values_of_any_length_are_read() -> None:
    lengths = [0, 1, 63, 64, 127, 128, 8191, 8192, 100_000]
    held = [Record(n, NOW, b"k" * size, b"v" * size) for n, size in enumerate(lengths)]

    assert read_back(batch(held).data).records == held


def test_record_bytes_count_the_length_before_the_record() -> None:
    made = batch([Record(0, NOW, b"k" * 100, b"v")])

    from analytics.dump.records.segment_reader import read_segment  # noqa: PLC0415
    from tests.support.segments import _opened  # noqa: PLC0415

    (chunk,) = read_segment(_opened(made.data))

    assert chunk.records.record_bytes.tolist() == [len(made.data) - 61]
