"""Decompression of batches into a buffer of bounded size.

Every codec writes into memory that is there already, so that a small batch which claims or holds
gigabytes fails for lack of room and not for lack of memory.
"""

from __future__ import annotations

import zlib
from enum import IntEnum
from typing import Final

import cramjam

_GZIP_WINDOW: Final = 31
_PIECE: Final = 1 << 20
_XERIAL: Final = b"\x82SNAPPY\x00"
_XERIAL_HEADER: Final = 16
_SNAPPY_LIMIT: Final = 64
"""No snappy block expands by more: its longest copy takes 64 bytes, its shortest element two."""
_LZ4_MAGIC: Final = b"\x04\x22\x4d\x18"
_LZ4_BLOCKS: Final = {4: 64 << 10, 5: 256 << 10, 6: 1 << 20, 7: 4 << 20}
_LZ4_STORED: Final = 0x80000000


class Codec(IntEnum):
    """The codec's number in a batch's attributes (``CompressionType``)."""

    NONE = 0
    GZIP = 1
    SNAPPY = 2
    LZ4 = 3
    ZSTD = 4


class UnreadableError(Exception):
    """The codec refuses the bytes."""


class NoRoomError(Exception):
    """There may be more than the buffer holds."""


def decompress_into(codec: int, content: memoryview, room: memoryview) -> int:
    """Decompress the records of a batch, or the value of a wrapper message.

    Args:
        codec: As in the attributes; not 0.
        content: The compressed bytes.
        room: Where the result goes.

    Returns:
        The number of bytes written.

    Raises:
        UnreadableError: The bytes are no stream of that codec, or end too soon.
        NoRoomError: The result is larger than ``room``. zstd cannot tell the two apart for sure.
    """
    if codec == Codec.GZIP:
        return _gunzip(content, room)
    if codec == Codec.SNAPPY:
        return _unsnappy(content, room)
    if codec == Codec.LZ4:
        return _unlz4(content, room)
    if codec == Codec.ZSTD:
        return _unzstd(content, room)
    raise UnreadableError(f"codec {codec} is unknown")


def _gunzip(content: memoryview, room: memoryview) -> int:
    written = 0
    while True:
        stream = zlib.decompressobj(_GZIP_WINDOW)
        rest: memoryview | bytes = content
        while not stream.eof:
            try:
                piece = stream.decompress(rest, _PIECE)
            except zlib.error as error:
                raise UnreadableError(str(error)) from error
            written = _append(piece, room, written)
            if not piece and not stream.unconsumed_tail and not stream.eof:
                raise UnreadableError("gzip stream ends too soon")
            rest = stream.unconsumed_tail
        # Java's GZIPInputStream goes on with a further member and ignores anything else.
        if not stream.unused_data.startswith(b"\x1f\x8b"):
            return written
        content = memoryview(stream.unused_data)


def _append(piece: bytes, room: memoryview, used: int) -> int:
    end = used + len(piece)
    if end > len(room):
        raise NoRoomError
    room[used:end] = piece
    return end


def _unsnappy(content: memoryview, room: memoryview) -> int:
    if bytes(content[:8]) != _XERIAL:
        return _unsnappy_block(content, room)
    if len(content) < _XERIAL_HEADER:
        raise UnreadableError("a snappy stream ends too soon")
    place, written = _XERIAL_HEADER, 0
    while place < len(content):
        # Streams written one after the other: a header may come again.
        if bytes(content[place : place + 8]) == _XERIAL:
            place += _XERIAL_HEADER
            continue
        size = int.from_bytes(content[place : place + 4])
        place += 4
        if not size or place + size > len(content):
            raise UnreadableError("a snappy block's length leads nowhere")
        written += _unsnappy_block(content[place : place + size], room[written:])
        place += size
    return written


def _unsnappy_block(content: memoryview, room: memoryview) -> int:
    if not len(content):
        raise UnreadableError("a snappy block without bytes")
    try:
        size = cramjam.snappy.decompress_raw_len(content)
        if size > _SNAPPY_LIMIT * len(content):
            raise UnreadableError("a snappy block claims more than its bytes can hold")
        if size > len(room):
            raise NoRoomError
        return int(cramjam.snappy.decompress_raw_into(content, room)) if size else 0
    except cramjam.DecompressionError as error:
        raise UnreadableError(str(error)) from error


def _unlz4(content: memoryview, room: memoryview) -> int:
    """Read one frame of independent blocks, as ``KafkaLZ4BlockInputStream`` does.

    The header's checksum is passed over: Kafka wrote it wrong in magic 0, and the batch has its
    own. So are the checksums of blocks and of the content.
    """
    place, largest, block_checksum = _lz4_header(content)
    written = 0
    while True:
        if place + 4 > len(content):
            raise UnreadableError("lz4 frame ends too soon")
        size = int.from_bytes(content[place : place + 4], "little")
        place += 4
        if not size:
            return written
        stored, size = size & _LZ4_STORED, size & ~_LZ4_STORED
        block = content[place : place + size]
        if len(block) < size or size > largest:
            raise UnreadableError("an lz4 block's length leads nowhere")
        if stored:
            written = _append(bytes(block), room, written)
        else:
            written += _unlz4_block(block, room[written : written + largest], largest)
        place += size + block_checksum


def _lz4_header(content: memoryview) -> tuple[int, int, int]:
    """Return where the first block begins, the largest block, and bytes of a block checksum."""
    if len(content) < 7 or bytes(content[:4]) != _LZ4_MAGIC:
        raise UnreadableError("no lz4 frame")
    flags, descriptor = content[4], content[5]
    largest = _LZ4_BLOCKS.get(descriptor >> 4)
    independent, dictionary = flags & 0x20, flags & 0x01
    if flags >> 6 != 1 or largest is None or not independent or dictionary:
        raise UnreadableError("an lz4 frame of a kind that Kafka refuses")
    return 7 + (8 if flags & 0x08 else 0), largest, 4 if flags & 0x10 else 0


def _unlz4_block(block: memoryview, room: memoryview, largest: int) -> int:
    try:
        return int(cramjam.lz4.decompress_block_into(block, room))
    except cramjam.DecompressionError as error:
        if len(room) < largest:
            raise NoRoomError from error
        raise UnreadableError(str(error)) from error


def _unzstd(content: memoryview, room: memoryview) -> int:
    try:
        return int(cramjam.zstd.decompress_into(content, room))
    except cramjam.DecompressionError as error:
        if "whole buffer" in str(error):
            raise NoRoomError from error
        raise UnreadableError(str(error)) from error
