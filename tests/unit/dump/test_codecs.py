"""Decompression: the framings brokers and clients wrote, and a bound on what comes out."""

from __future__ import annotations

import gzip
import struct

import cramjam
import numpy as np
import pytest

from analytics.dump.records.raw_records import NoRoomError, UnreadableError, decompress_into
from tests.support.segments import (
    CODECS,
    GZIP,
    LZ4,
    LZ4_HEADER,
    LZ4_HEADER_OF_MAGIC_0,
    SNAPPY,
    ZSTD,
    compress,
    lz4_frame,
    xerial,
)

PLAIN = bytes(range(256)) * 300 + b"the end"
COMPRESSED = CODECS[1:]


def unpack(codec: int, content: bytes, room: int = 1 << 20) -> bytes:
    buffer = np.zeros(room, np.uint8)
    size = decompress_into(codec, memoryview(content), buffer.data)
    return buffer[:size].tobytes()


@pytest.mark.parametrize("codec", COMPRESSED)
@pytest.mark.parametrize("plain", [b"", b"x", PLAIN], ids=["nothing", "one byte", "76 KB"])
def test_what_was_compressed_comes_back(codec: int, plain: bytes) -> None:
    assert unpack(codec, compress(codec, plain)) == plain


@pytest.mark.parametrize("codec", COMPRESSED)
def test_room_that_is_exactly_enough_is_enough(codec: int) -> None:
    assert unpack(codec, compress(codec, PLAIN), len(PLAIN)) == PLAIN


@pytest.mark.parametrize("codec", COMPRESSED)
def test_too_little_room_is_said_and_nothing_is_written_beyond_it(codec: int) -> None:
    buffer = np.full(len(PLAIN) + 100, 7, np.uint8)

    with pytest.raises(NoRoomError):
        decompress_into(codec, memoryview(compress(codec, PLAIN)), buffer.data[: len(PLAIN) - 1])

    assert (buffer[len(PLAIN) - 1 :] == 7).all()


@pytest.mark.parametrize("codec", COMPRESSED)
def test_a_stream_that_ends_too_soon_is_unreadable(codec: int) -> None:
    content = compress(codec, PLAIN)
    for size in (0, 1, 5, 12, len(content) // 2, len(content) - 1):
        with pytest.raises(UnreadableError):
            unpack(codec, content[:size])


@pytest.mark.parametrize("codec", COMPRESSED)
def test_bytes_that_are_no_stream_are_unreadable(codec: int) -> None:
    with pytest.raises(UnreadableError):
        unpack(codec, b"\xfe\xed\xfa\xce" * 20)


@pytest.mark.parametrize("codec", [5, 6, 7])
def test_a_codec_of_the_future_is_unreadable(codec: int) -> None:
    with pytest.raises(UnreadableError):
        unpack(codec, b"anything")


def test_snappy_without_xerial_s_header_is_one_block() -> None:
    assert unpack(SNAPPY, bytes(cramjam.snappy.compress_raw(PLAIN))) == PLAIN


def test_xerial_streams_may_follow_each_other() -> None:
    assert unpack(SNAPPY, xerial(PLAIN) + xerial(b"more")) == PLAIN + b"more"


def test_an_xerial_block_that_claims_more_bytes_than_there_are_is_unreadable() -> None:
    content = bytearray(xerial(b"x" * 50))
    content[16:20] = struct.pack(">i", 2**31 - 1)

    with pytest.raises(UnreadableError):
        unpack(SNAPPY, bytes(content))


def test_a_snappy_block_that_claims_gigabytes_is_refused_before_it_is_read() -> None:
    with pytest.raises(UnreadableError):
        unpack(SNAPPY, b"\xff\xff\xff\xff\x0f" + bytes(100))


def test_the_wrong_header_checksum_of_format_0_is_passed_over() -> None:
    assert unpack(LZ4, lz4_frame(PLAIN, LZ4_HEADER_OF_MAGIC_0)) == PLAIN


def test_an_lz4_frame_may_carry_its_size_and_checksums() -> None:
    block = bytes(cramjam.lz4.compress_block(PLAIN[:1000], store_size=False))
    # Independent blocks, block checksums, content size, content checksum.
    head = b"\x04\x22\x4d\x18\x7c\x40" + struct.pack("<q", 1000) + b"?"
    body = struct.pack("<I", len(block)) + block + b"sum?" + bytes(4) + b"sum?"

    assert unpack(LZ4, head + body) == PLAIN[:1000]


@pytest.mark.parametrize(
    ("at", "value"),
    [(4, 0x40), (4, 0xA0), (4, 0x61), (5, 0x30)],
    ids=["linked", "version", "dict", "size"],
)
def test_an_lz4_frame_of_a_kind_that_kafka_refuses_is_unreadable(at: int, value: int) -> None:
    header = bytearray(LZ4_HEADER)
    header[at] = value

    with pytest.raises(UnreadableError):
        unpack(LZ4, lz4_frame(PLAIN, bytes(header)))


def test_gzip_members_may_follow_each_other_and_what_comes_after_is_ignored() -> None:
    twice = gzip.compress(b"one") + gzip.compress(b"two")

    assert unpack(GZIP, twice + b"\0\0\0") == b"onetwo"


def test_a_zstd_frame_may_say_its_size_or_not() -> None:
    with_size = bytes(cramjam.zstd.compress(PLAIN))

    assert unpack(ZSTD, with_size) == unpack(ZSTD, compress(ZSTD, PLAIN)) == PLAIN
