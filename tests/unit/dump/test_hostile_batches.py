"""Batches whose checksum is right and whose content means harm: bounded time, bounded memory."""

from __future__ import annotations

import gzip
import io
import random
import struct
import tracemalloc
from typing import TYPE_CHECKING

import cramjam
import pytest
from crc32c import crc32c

from analytics.dump.batches.batch_bytes import DamageReason, Limits
from analytics.dump.records.segment_reader import ReadOptions, read_segment
from tests.support.plain_batches import RefusedError, read_plain_batch
from tests.support.segments import (
    GZIP,
    LZ4,
    LZ4_HEADER,
    NOW,
    SNAPPY,
    ZSTD,
    Header,
    Made,
    Record,
    batch,
    encode_record,
    joined,
    message,
    read_back,
    records,
    seal,
    varint,
    wrapper,
    zstd_stream,
)

if TYPE_CHECKING:
    from collections.abc import Callable

MIB = 1 << 20
BEFORE, AFTER = batch(records(0, 3)), batch(records(9, 2))
SOUND = [0, 1, 2, 9, 10]


def between(data: bytes, options: ReadOptions = ReadOptions()) -> tuple[list[int], list[str]]:  # noqa: B008
    """Offsets read and reasons given where a batch at offset 3 stands between two sound ones."""
    read = read_back(joined([BEFORE, Made(data), AFTER]), options)
    assert read.summary
    assert read.summary.reconciles
    return [each.offset for each in read.records], [str(each.reason) for each in read.damages]


def claiming(count: int, encoded: bytes, last: int = 8) -> bytes:
    return seal(3, Header(last_offset=last, count=count), encoded)


ONE = encode_record(0, 0, b"k", b"v")
TWO = ONE + encode_record(1, 0, b"k", b"v")
ENDLESS = b"\xff" * 12


@pytest.mark.parametrize("count", [-1, -(2**31), 1, 3, 4, 1000, 2**31 - 1])
def test_a_count_that_is_not_what_the_batch_holds(count: int) -> None:
    assert between(claiming(count, TWO)) == (SOUND, ["bad_record_count"])


@pytest.mark.parametrize(
    "encoded",
    [
        pytest.param(varint(-1) + ONE[1:], id="negative length"),
        pytest.param(varint(5) + ONE[1:8], id="length below the smallest record"),
        pytest.param(varint(2**31 - 1) + ONE[1:], id="length beyond the batch"),
        pytest.param(ENDLESS, id="a length that never ends"),
        pytest.param(varint(15) + b"\0" + ENDLESS + b"\0\0", id="a timestamp that never ends"),
        pytest.param(varint(10) + b"\0\0" + b"\xff" * 7 + b"\0", id="an offset that never ends"),
        pytest.param(varint(6) + b"\0\0\0" + varint(-2) + b"\0\0", id="negative key length"),
        pytest.param(varint(6) + b"\0\0\0" + varint(60) + b"\0\0", id="key beyond the record"),
        pytest.param(varint(6) + b"\0\0\0\0" + varint(-2) + b"\0", id="negative value length"),
        pytest.param(varint(6) + b"\0\0\0\0" + varint(60) + b"\0", id="value beyond the record"),
        pytest.param(varint(6) + b"\0\0\0\0\0" + varint(-1), id="negative number of headers"),
        pytest.param(varint(6) + b"\0\0\0\0\0" + varint(1), id="headers beyond the record"),
        pytest.param(varint(8) + b"\0\0\0\0\0\2" + varint(-1) + b"\0", id="header without a name"),
        pytest.param(varint(8) + b"\0\0\0\0\0\2\0" + varint(-2), id="negative header length"),
        pytest.param(varint(7) + b"\0" * 7, id="a byte after the record's fields"),
        pytest.param(encode_record(-1, 0, None, None), id="negative offset"),
        pytest.param(encode_record(6, 0, None, None), id="offset beyond the batch"),
    ],
)
@pytest.mark.parametrize("copies", [1, 60])
def test_a_record_that_does_not_fit(encoded: bytes, copies: int) -> None:
    # Alone, and as the last record of many batches that are read in lock-step.
    made = [batch(records(3 + n, 1)) for n in range(copies - 1)]
    last = 3 + copies - 1
    bad = seal(last, Header(last_offset=last + 5, count=1), encoded)

    read = read_back(joined([BEFORE, *made, Made(bad)]))

    assert [each.offset for each in read.records] == list(range(last))
    assert [str(each.reason) for each in read.damages] == ["bad_record"]
    assert read.damages[0].records <= 1


def test_offsets_that_do_not_grow_within_a_batch() -> None:
    assert between(claiming(2, ONE + ONE)) == (SOUND, ["bad_record"])


@pytest.mark.parametrize("codec", [5, 6, 7])
def test_a_codec_that_does_not_exist(codec: int) -> None:
    data = seal(3, Header(codec=codec, last_offset=8), ONE)

    assert between(data) == (SOUND, ["bad_compression"])


@pytest.mark.parametrize("codec", [GZIP, SNAPPY, LZ4, ZSTD])
def test_what_the_codec_refuses(codec: int) -> None:
    data = seal(3, Header(codec=codec, last_offset=8), b"no stream of any kind, surely")

    assert between(data) == (SOUND, ["bad_compression"])


@pytest.mark.parametrize("seed", range(300))
def test_whatever_the_bytes_a_plain_reader_reads_the_same(seed: int) -> None:
    draw = random.Random(seed)
    parts, expected, refused, offset = [], [], 0, 0
    for _ in range(draw.choice((1, 3, 60))):
        held = records(offset, draw.choice((1, 2, 5, 60)))
        data = _mutated(batch(held, headers=draw.choice(((), ((b"a", None),)))).data, draw)
        try:
            expected += read_plain_batch(data)
        except RefusedError:
            refused += 1
        parts.append(data)
        offset = held[-1].offset + 1

    read = read_back(b"".join(parts), ReadOptions(chunk_bytes=draw.choice((100, 4 * MIB))))

    assert read.records == expected
    assert len(read.damages) == refused
    assert read.summary
    assert read.summary.reconciles


def _mutated(sound: bytes, draw: random.Random) -> bytes:
    """Change bytes of the records and of their count; the checksum is right again."""
    data = bytearray(sound)
    for _ in range(draw.choice((0, 0, 1, 2, 8))):
        at = draw.choice((draw.randrange(61, len(data)), draw.randrange(57, min(len(data), 75))))
        data[at] = draw.choice((data[at] ^ 1 << draw.randrange(8), 0x80, 0xFF, 0, 1))
    if draw.random() < 0.1:
        data += draw.randbytes(draw.randint(1, 9))
    data[8:12] = (len(data) - 12).to_bytes(4)
    data[17:21] = crc32c(data[21:]).to_bytes(4)
    return bytes(data)


# --- limits --------------------------------------------------------------------------------------

SMALL = Limits(max_batch_bytes=2 * MIB, max_decompressed_bytes=2 * MIB, max_batch_records=5000)
LIMITED = ReadOptions(limits=SMALL, chunk_bytes=MIB)


def _bomb(codec: int, size: int) -> bytes:
    plain = encode_record(0, 0, None, bytes(size))
    pack: dict[int, Callable[[bytes], bytes]] = {
        GZIP: lambda data: gzip.compress(data, mtime=0),
        SNAPPY: lambda data: bytes(cramjam.snappy.compress_raw(data)),
        LZ4: lambda data: _lz4_of_zeros(len(data)),
        ZSTD: zstd_stream,
    }
    return seal(3, Header(codec=codec, last_offset=8), pack[codec](plain))


def _lz4_of_zeros(size: int) -> bytes:
    block = bytes(cramjam.lz4.compress_block(bytes(4 * MIB), store_size=False))
    blocks = (len(block).to_bytes(4, "little") + block) * -(-size // (4 * MIB))
    return LZ4_HEADER[:5] + b"\x70?" + blocks + bytes(4)


@pytest.mark.parametrize("codec", [GZIP, SNAPPY, LZ4, ZSTD])
def test_a_compression_bomb_is_refused_within_the_limit(codec: int) -> None:
    bomb = _bomb(codec, 200 * MIB)
    assert len(bomb) < 12 * MIB
    limits = Limits(max_decompressed_bytes=2 * MIB)
    tracemalloc.start()

    found = between(bomb, ReadOptions(limits=limits))

    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert found == (SOUND, ["decompressed_too_large"])
    assert peak < 5 * len(bomb) + 20 * MIB


@pytest.mark.parametrize("codec", [GZIP, ZSTD])
def test_bombs_one_after_the_other_are_refused_too(codec: int) -> None:
    # Each is within the limit of one batch.
    one = _bomb(codec, MIB)
    parts = [seal(n, Header(codec=codec, last_offset=n), one[61:]) for n in range(20)]
    limits = Limits(free_expansion_bytes=4 * MIB, max_expansion=0)

    read = read_back(b"".join(parts), ReadOptions(limits=limits))

    assert [each.offset for each in read.records] == [0, 1, 2]
    assert {each.reason for each in read.damages} == {DamageReason.DECOMPRESSED_TOO_LARGE}


def test_a_batch_larger_than_the_limit_is_damage_with_a_part_of_its_bytes() -> None:
    large = batch([Record(3, NOW, None, bytes(3 * MIB))])

    read = read_back(joined([BEFORE, large, AFTER]), LIMITED)

    assert [each.offset for each in read.records] == SOUND
    (damage,) = read.damages
    assert damage.reason is DamageReason.BATCH_TOO_LARGE
    assert (damage.size, len(damage.content), damage.records) == (len(large.data), MIB, 1)


@pytest.mark.parametrize("codec", [0, GZIP])
def test_a_batch_of_more_records_than_the_limit_is_damage(codec: int) -> None:
    made = batch(records(3, 5001), Header(codec=codec))
    after = batch(records(6000, 2))

    read = read_back(joined([BEFORE, made, after]), LIMITED)

    assert [each.offset for each in read.records] == [0, 1, 2, 6000, 6001]
    assert [each.reason for each in read.damages] == [DamageReason.BATCH_TOO_LARGE]


def test_a_wrapper_of_more_messages_than_the_limit_is_damage() -> None:
    made = wrapper(records(3, 5001), 1, GZIP)

    read = read_back(joined([BEFORE, made, batch(records(6000, 2))]), LIMITED)

    assert [each.offset for each in read.records] == [0, 1, 2, 6000, 6001]
    assert [each.reason for each in read.damages] == [DamageReason.BATCH_TOO_LARGE]


def test_batches_that_expand_are_given_in_pieces() -> None:
    made = [batch([Record(n, NOW, None, bytes(MIB))], Header(codec=ZSTD)) for n in range(12)]

    read = read_back(joined(made), ReadOptions(chunk_bytes=MIB))

    assert read.records == [each.records[0] for each in made]
    assert read.chunks > 2


def test_a_batch_that_expands_beyond_a_piece_is_a_piece() -> None:
    held = [Record(0, NOW, b"k", bytes(30 * MIB)), Record(1, NOW, b"k", b"v")]
    made = [batch(held, Header(codec=GZIP)), batch(records(2, 2), Header(codec=GZIP))]

    assert read_back(joined(made)).records == [*held, *made[1].records]


# --- time ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "data",
    [
        pytest.param(bytes(8 * MIB), id="zeros"),
        pytest.param(b"\xff" * 8 * MIB, id="ones"),
        pytest.param(b"\0\0\0\0\0\0\0\x20" * MIB, id="a header of format 0 at every eighth byte"),
        pytest.param(random.Random(1).randbytes(8 * MIB), id="noise"),
        pytest.param(
            message(Record(5, 0, None, bytes(4000)), 0)[:26] * 300_000, id="headers of messages"
        ),
        pytest.param(
            (struct.pack(">qi", 5, 4 * MIB) + seal(5, Header(count=0), b"")[12:]) * 100_000,
            id="headers that claim megabytes",
        ),
    ],
)
def test_bytes_that_look_like_batches_everywhere_are_looked_at_once(data: bytes) -> None:
    # Quadratic work on these would take hours.
    reader = read_segment(io.BytesIO(data), ReadOptions(keep_content=False))

    assert sum(len(chunk.records) for chunk in reader) == 0
    assert reader.summary.reconciles


def test_a_claim_before_every_batch_costs_no_batch() -> None:
    parts = []
    for offset in range(0, 2000, 2):
        claim = seal(offset, Header(count=0), b"")
        parts += [claim[:8] + (MIB).to_bytes(4) + claim[12:]]
        parts += [batch(records(offset + 1, 1)).data]
    data = b"".join([*parts, bytes(2 * MIB)])

    read = read_back(data)

    assert [each.offset for each in read.records] == list(range(1, 2000, 2))


def test_a_record_of_a_million_headers_is_read() -> None:
    number = 1_000_000
    body = b"\0\0\0" + varint(1) + b"k" + varint(1) + b"v" + varint(number) + b"\0\1" * number
    data = seal(0, Header(count=1), varint(len(body)) + body)

    assert read_back(data).records == [Record(0, NOW, b"k", b"v")]
