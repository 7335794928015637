"""Compression as Kafka's producers and brokers do it, for generated segments."""

from __future__ import annotations

import gzip
import struct
from typing import Final

import cramjam

_XERIAL_HEADER: Final = b"\x82SNAPPY\x00" + struct.pack(">ii", 1, 1)
# Frame version 1, independent blocks, no checksums; blocks of 64 KiB; the header's checksum.
_LZ4_HEADER: Final = b"\x04\x22\x4d\x18\x60\x40\x82"
_LZ4_BLOCK: Final = 64 << 10
_LZ4_STORED: Final = 0x80000000
_SNAPPY_BLOCK: Final = 32 << 10


def compress(codec: int, records: bytes) -> bytes:
    """Return the records of a batch compressed by the codec of that number."""
    return (_plain, _gzip, _snappy, _lz4, _zstd)[codec](records)


def _plain(records: bytes) -> bytes:
    return records


def _gzip(records: bytes) -> bytes:
    return gzip.compress(records, mtime=0)


def _snappy(records: bytes) -> bytes:
    parts = [_XERIAL_HEADER]
    for start in range(0, len(records), _SNAPPY_BLOCK):
        block = bytes(cramjam.snappy.compress_raw(records[start : start + _SNAPPY_BLOCK]))
        parts += [len(block).to_bytes(4), block]
    return b"".join(parts)


def _lz4(records: bytes) -> bytes:
    parts = [_LZ4_HEADER]
    for start in range(0, len(records), _LZ4_BLOCK):
        plain = records[start : start + _LZ4_BLOCK]
        block = bytes(cramjam.lz4.compress_block(plain, store_size=False))
        if len(block) < len(plain):
            parts += [len(block).to_bytes(4, "little"), block]
        else:
            parts += [(len(plain) | _LZ4_STORED).to_bytes(4, "little"), plain]
    return b"".join([*parts, bytes(4)])


def _zstd(records: bytes) -> bytes:
    # A stream, as zstd-jni writes it: no content size in the frame's header.
    stream = cramjam.zstd.Compressor(level=3)
    stream.compress(records)
    return bytes(stream.finish())
