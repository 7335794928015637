"""Raw records, columnar: byte ranges in one buffer, and the batches they lie in.

Decompression of batches into a buffer of bounded size.

Every codec writes into memory that is there already, so that a small batch which claims or holds
gigabytes fails for lack of room and not for lack of memory.
"""

from __future__ import annotations

import zlib
from dataclasses import dataclass, field
from enum import IntEnum
from typing import TYPE_CHECKING, Any, Final, Self

import cramjam
import numpy as np

from analytics.dump.batches.batch_bytes import DamageReason
from analytics.dump.batches.headers import Batches

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from analytics.dump.batches.batch_bytes import Damage, Limits


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


# The decompressed side of a chunk: what its compressed batches hold, one after the other.


class Expansion:
    """How many bytes one read has decompressed, and may yet."""

    def __init__(self, limits: Limits) -> None:
        self._limits = limits
        self._allowance = limits.free_expansion_bytes

    def earn(self, size: int) -> None:
        """Bytes of the file were read."""
        self._allowance += size * self._limits.max_expansion

    def spend(self, size: int) -> bool:
        """Whether so many decompressed bytes are still within bounds."""
        self._allowance -= size
        return self._allowance >= 0


class Arena:
    """A buffer that decompressed regions are laid into, in order."""

    def __init__(self, size: int, limits: Limits, expansion: Expansion) -> None:
        self._room = np.empty(size + PADDING, np.uint8)
        self._limits = limits
        self._expansion = expansion
        self.used = 0

    def add(self, codec: int, content: memoryview) -> tuple[int, int] | DamageReason | None:
        """Decompress a batch.

        Returns:
            Where it lies, why it cannot be read, or None where this arena is too full for it.
        """
        room = self._room.data[self.used : -PADDING]
        try:
            size = decompress_into(codec, content, room)
        except UnreadableError:
            return DamageReason.BAD_COMPRESSION
        except NoRoomError:
            if self.used:
                return None
            return self._alone(codec, content, len(room))
        return self._room_for(size)

    def _alone(self, codec: int, content: memoryview, tried: int) -> tuple[int, int] | DamageReason:
        """A batch larger than the arena gets one of its own, of the largest size allowed."""
        most = self._limits.max_decompressed_bytes
        if tried >= most:
            return DamageReason.DECOMPRESSED_TOO_LARGE
        # Memory that is never written costs nothing.
        self._room = np.empty(most + PADDING, np.uint8)
        try:
            return self._room_for(decompress_into(codec, content, self._room.data[:-PADDING]))
        except UnreadableError:
            return DamageReason.BAD_COMPRESSION
        except NoRoomError:
            return DamageReason.DECOMPRESSED_TOO_LARGE

    def _room_for(self, size: int) -> tuple[int, int] | DamageReason:
        if size > self._limits.max_decompressed_bytes or not self._expansion.spend(size):
            return DamageReason.DECOMPRESSED_TOO_LARGE
        start, self.used = self.used, self.used + size
        return start, self.used

    @property
    def data(self) -> NDArray[np.uint8]:
        """What was laid, with `PADDING` zeros after it."""
        self._room[self.used : self.used + PADDING] = 0
        return self._room[: self.used + PADDING]


# Records of some batches as columns, before they are put in order with those of others.


@dataclass(frozen=True)
class RecordColumns:
    """One row a record; the columns of `RawRecords` of the same names."""

    batch: NDArray[np.int64]
    offset: NDArray[np.int64]
    timestamp: NDArray[np.int64]
    record_bytes: NDArray[np.int64]
    key: Spans
    value: Spans

    def __len__(self) -> int:
        return self.offset.size

    def take(self, rows: NDArray[Any]) -> Self:
        """Return the given rows (indices or a mask)."""
        return type(self)(
            self.batch[rows],
            self.offset[rows],
            self.timestamp[rows],
            self.record_bytes[rows],
            self.key.take(rows),
            self.value.take(rows),
        )

    @classmethod
    def empty(cls) -> Self:
        """Return no rows."""
        none = np.empty(0, np.int64)
        return cls(none, none, none, none, Spans(none, none), Spans(none, none))

    @classmethod
    def in_batch_order(cls, parts: list[Self]) -> Self:
        """Return the rows of all parts, ordered by batch, else as they were."""
        parts = [part for part in parts if len(part)] or [cls.empty()]
        if len(parts) == 1:
            return parts[0]
        joined = cls(
            np.concatenate([part.batch for part in parts]),
            np.concatenate([part.offset for part in parts]),
            np.concatenate([part.timestamp for part in parts]),
            np.concatenate([part.record_bytes for part in parts]),
            _joined([part.key for part in parts]),
            _joined([part.value for part in parts]),
        )
        return joined.take(np.argsort(joined.batch, kind="stable"))


def _joined(parts: list[Spans]) -> Spans:
    starts = np.concatenate([part.start for part in parts])
    return Spans(starts, np.concatenate([part.length for part in parts]))


PADDING = 64
"""Zero bytes after the last byte of `RawRecords.data` that a span can hold, so that reads of fixed
width at the end of a span stay inside the buffer."""


@dataclass(frozen=True)
class Spans:
    """Byte ranges into `RawRecords.data`.

    Attributes:
        start: int64; 0 where null.
        length: int64; -1 is null, 0 is empty.
    """

    start: NDArray[np.int64]
    length: NDArray[np.int64]

    def take(self, rows: NDArray[Any]) -> Spans:
        """Return the given rows."""
        return Spans(self.start[rows], self.length[rows])


@dataclass(frozen=True)
class RawRecords:
    """Records in log order, one row a record.

    Attributes:
        data: The buffer that all spans point into, with `PADDING` zero bytes after the last span.
        batches: The batches that the records lie in; empty batches are among them.
        batch: int32, row of ``batches``.
        offset: int64.
        timestamp: int64 milliseconds, -1 none.
        record_bytes: int32, size of the encoded record within the decompressed batch, with its
            length varint (magic 2) or its offset and size (magic 0 and 1).
        key: Spans.
        value: Spans; null is a tombstone.
    """

    data: NDArray[np.uint8]
    batches: Batches
    batch: NDArray[np.int32]
    offset: NDArray[np.int64]
    timestamp: NDArray[np.int64]
    record_bytes: NDArray[np.int32]
    key: Spans
    value: Spans

    def __len__(self) -> int:
        return self.offset.size


def take_records(records: RawRecords, rows: NDArray[Any]) -> RawRecords:
    """Return the given rows (indices or a mask); buffer and batches stay as they are."""
    return RawRecords(
        records.data,
        records.batches,
        records.batch[rows],
        records.offset[rows],
        records.timestamp[rows],
        records.record_bytes[rows],
        records.key.take(rows),
        records.value.take(rows),
    )


@dataclass(frozen=True)
class Chunk:
    """A piece of a segment: its readable records and what was damaged on the way to them."""

    records: RawRecords
    damages: list[Damage] = field(default_factory=list)
