"""Batches with right checksums and contents that mean harm, each made for a given base offset."""

from __future__ import annotations

import gzip
import struct
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

import cramjam

from schemas import record_type
from tests.support.batches import Header, batch, nested_wrappers, record, sound_batch
from tests.support.encoder import encode_key, encode_value, unsigned_varint

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

KEY = encode_key(record_type("OffsetCommit"), 1, {"group": "sound", "topic": "t", "partition": 0})
VALUE = encode_value(
    record_type("OffsetCommit"),
    3,
    {"offset": 7, "leader_epoch": -1, "metadata": "", "commit_timestamp": 1_700_000_000_000},
)
BOMB_BYTES = 300 << 20


@dataclass(frozen=True)
class Broken:
    """The bytes, the offsets they take, and which records in them are read or undecoded."""

    data: bytes
    records: int = 1
    sound: tuple[int, ...] = ()
    undecoded: tuple[int, ...] = ()


def _bomb(compress: Callable[[bytes], bytes], codec: int, offset: int) -> Broken:
    # One record whose value is nothing but zeros, 300 MiB of them.
    head = b"\x00\x00\x00" + b"\x01"
    body = head + _zigzag(BOMB_BYTES) + bytes(BOMB_BYTES) + b"\x00"
    compressed = compress(_zigzag(len(body)) + body)
    return Broken(batch(Header(offset, 0, 1, codec=codec), compressed))


def _zigzag(value: int) -> bytes:
    return unsigned_varint(value << 1)


def _gzip_bomb(offset: int) -> Broken:
    return _bomb(lambda data: gzip.compress(data, 1, mtime=0), 1, offset)


def _lz4_bomb(offset: int) -> Broken:
    return _bomb(_lz4_frame, 3, offset)


def _lz4_frame(data: bytes) -> bytes:
    """Independent blocks of 64 KiB without checksums, as Kafka writes them."""
    frame = bytearray(b"\x04\x22\x4d\x18\x60\x40\x82")
    blocks: dict[bytes, bytes] = {}
    for start in range(0, len(data), 1 << 16):
        plain = data[start : start + (1 << 16)]
        if plain not in blocks:
            blocks[plain] = bytes(cramjam.lz4.compress_block(plain, store_size=False))
        frame += struct.pack("<I", len(blocks[plain])) + blocks[plain]
    return bytes(frame) + bytes(4)


def _zstd_bomb(offset: int) -> Broken:
    return _bomb(lambda data: bytes(cramjam.zstd.compress(data)), 4, offset)


def _snappy_claims_much(offset: int) -> Broken:
    # A raw snappy block that says it holds 4 GiB.
    block = unsigned_varint(2**32 - 1) + b"\x00a"
    xerial = b"\x82SNAPPY\x00" + struct.pack(">iii", 1, 1, len(block)) + block
    return Broken(batch(Header(offset, 0, 1, codec=2), xerial))


def _count(claimed: int, offset: int) -> Broken:
    records = record(0, KEY, VALUE) + record(1, KEY, VALUE)
    return Broken(batch(Header(offset, 1, claimed), records), records=2)


def _record_bytes(records: bytes, offset: int) -> Broken:
    return Broken(batch(Header(offset, 0, 1), records))


def _nested_wrappers(offset: int) -> Broken:
    return Broken(nested_wrappers(offset, 40))


_GROUP = encode_key(record_type("GroupMetadata"), 2, {"group": "g"})
_TOPOLOGY = encode_key(record_type("StreamsGroupTopology"), 23, {"group_id": "s"})
_MEMBER = encode_key(
    record_type("ConsumerGroupMemberMetadata"), 5, {"group_id": "g", "member_id": "m"}
)
_EMPTY_GROUP: Mapping[str, object] = {
    "protocol_type": "",
    "generation": 1,
    "protocol": None,
    "leader": None,
    "current_state_timestamp": 5,
    "members": [],
}


def _group_value(count: int) -> bytes:
    # The count of the members is the last field.
    return encode_value(record_type("GroupMetadata"), 3, _EMPTY_GROUP)[:-4] + struct.pack(
        ">i", count
    )


def _hostile_values() -> Iterable[tuple[bytes | None, bytes | None]]:
    """Keys and values that are no records of any version."""
    huge, endless = unsigned_varint(2**31 - 1), b"\xff" * 12
    yield None, VALUE
    yield b"", VALUE
    yield b"\x00", VALUE
    yield struct.pack(">h", 99) + b"x", VALUE
    yield struct.pack(">h", -1) + b"x", VALUE
    yield KEY[:-1], VALUE
    yield KEY + b"\x00", VALUE
    yield b"\x00\x01\xff\xff", VALUE
    yield KEY, b""
    yield KEY, b"\x00"
    yield KEY, struct.pack(">h", 9) + VALUE[2:]
    yield KEY, struct.pack(">h", -1) + VALUE[2:]
    yield KEY, VALUE[:-1]
    yield KEY, VALUE + b"\x00"
    yield KEY, struct.pack(">hqiH", 3, 7, -1, 2) + b"\xff\xfe" + bytes(8)
    yield KEY, struct.pack(">hqi", 4, 7, -1) + endless
    yield KEY, struct.pack(">hqi", 4, 7, -1) + b"\x01" + bytes(8) + huge
    yield KEY, struct.pack(">hqi", 4, 7, -1) + b"\x01" + bytes(8) + b"\x01\x00" + huge
    yield _GROUP, _group_value(-7)
    yield _GROUP, _group_value(-1)
    yield _GROUP, _group_value(2**31 - 1)
    yield _GROUP, struct.pack(">hh", 3, -5)
    yield _TOPOLOGY, b"\x00\x00\x00\x00\x00\x01" + huge
    # Arrays inside arrays inside arrays, each as large as its bytes could hold.
    yield _TOPOLOGY, b"\x00\x00\x00\x00\x00\x01" + (b"\xff\x7f" + b"\x02a" * 200) * 50
    yield _MEMBER, b"\x00\x00" + b"\x00\x00\x02c\x02h\x01\x00" + bytes(5) + b"\x01\x00" + huge


def _values(offset: int) -> Broken:
    hostile = list(_hostile_values())
    pairs = [pair for each in hostile for pair in (each, (KEY, VALUE))]
    return Broken(
        sound_batch(offset, pairs),
        records=len(pairs),
        sound=tuple(range(offset + 1, offset + len(pairs), 2)),
        undecoded=tuple(range(offset, offset + len(pairs), 2)),
    )


BATCHES: dict[str, Callable[[int], Broken]] = {
    "gzip_bomb": _gzip_bomb,
    "lz4_bomb": _lz4_bomb,
    "zstd_bomb": _zstd_bomb,
    "snappy_claims_much": _snappy_claims_much,
    "negative_count": partial(_count, -5),
    "count_beyond_the_batch": partial(_count, 1_000_000),
    "count_of_two_billion": partial(_count, 2**31 - 1),
    "negative_record_length": partial(_record_bytes, b"\x01" + record(0, KEY, VALUE)[1:]),
    "record_length_beyond_the_batch": partial(
        _record_bytes, _zigzag(1 << 30) + record(0, KEY, VALUE)
    ),
    "endless_varint": partial(_record_bytes, b"\xff" * 40),
    "empty_records": partial(_record_bytes, b""),
    "nested_wrappers": _nested_wrappers,
    "hostile_values": _values,
}
