"""Record batches made by hand, sound or as broken as a test wants them.

Magic 2 (``DefaultRecordBatch``) and magic 0/1 entries, written byte by byte so that any field can
be given a value no broker would write, with a checksum that is right all the same.
"""

from __future__ import annotations

import gzip
import struct
import zlib
from dataclasses import dataclass

import crc32c

NO_TIMESTAMP = -1
GZIP = 1


def varint(value: int) -> bytes:
    """A zigzag varint, as record fields use it."""
    left = (value << 1) ^ (value >> 63)
    encoded = bytearray()
    while left >= 0x80:
        encoded.append(left & 0x7F | 0x80)
        left >>= 7
    encoded.append(left)
    return bytes(encoded)


def record(
    offset_delta: int, key: bytes | None, value: bytes | None, timestamp_delta: int = 0
) -> bytes:
    """One record of a magic 2 batch, its length before it."""
    body = b"\x00" + varint(timestamp_delta) + varint(offset_delta)
    for content in (key, value):
        body += varint(-1) if content is None else varint(len(content)) + content
    body += varint(0)
    return varint(len(body)) + body


@dataclass(frozen=True)
class Header:
    """The fields of a magic 2 header that are not derived from the records.

    ``count`` and ``length`` are those of the records unless given: a batch can claim any.
    """

    base_offset: int
    last_delta: int
    count: int
    base_timestamp: int = 1_700_000_000_000
    leader_epoch: int = 0
    codec: int = 0
    producer_id: int = -1
    producer_epoch: int = -1
    base_sequence: int = -1
    length: int | None = None


def batch(header: Header, records: bytes) -> bytes:
    """A magic 2 batch around its encoded (and perhaps compressed) records."""
    body = struct.pack(
        ">hiqqqhii",
        header.codec,
        header.last_delta,
        header.base_timestamp,
        header.base_timestamp,
        header.producer_id,
        header.producer_epoch,
        header.base_sequence,
        header.count,
    )
    body += records
    length = 9 + len(body) if header.length is None else header.length
    crc = crc32c.crc32c(body)
    return struct.pack(">qiibI", header.base_offset, length, header.leader_epoch, 2, crc) + body


def sound_batch(base_offset: int, pairs: list[tuple[bytes | None, bytes | None]]) -> bytes:
    """An uncompressed batch of keys and values at consecutive offsets."""
    records = b"".join(record(delta, key, value) for delta, (key, value) in enumerate(pairs))
    return batch(Header(base_offset, len(pairs) - 1, len(pairs)), records)


def entry(
    offset: int, key: bytes | None, value: bytes | None, *, magic: int = 1, codec: int = 0
) -> bytes:
    """One magic 0 or 1 entry; with a codec, ``value`` is the compressed message set."""
    message = struct.pack(">bb", magic, codec)
    if magic == 1:
        message += struct.pack(">q", 1_700_000_000_000)
    for content in (key, value):
        message += struct.pack(">i", -1 if content is None else len(content)) + (content or b"")
    crc = zlib.crc32(message)
    return struct.pack(">qiI", offset, 4 + len(message), crc) + message


def nested_wrappers(offset: int, depth: int) -> bytes:
    """A gzip wrapper around a gzip wrapper around …: no broker accepts more than one."""
    inner = entry(offset, b"\x00\x02\x00\x01g", None)
    for _ in range(depth):
        inner = entry(offset, None, gzip.compress(inner, mtime=0), codec=GZIP)
    return inner
