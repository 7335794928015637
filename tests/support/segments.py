"""Log segments made for tests: every message format, codec and kind of batch.

Written byte by byte from the format's description, apart from the reader, with `Made` holding what
was put in, so that what is read can be compared with it. Damage is done by the tests themselves.
"""

from __future__ import annotations

import gzip
import itertools
import random
import struct
import zlib
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, NamedTuple

import cramjam
from crc32c import crc32c

from analytics.dump.records.segment_reader import FileReader, ReadOptions, read_segment

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from analytics.dump.batches.batch_bytes import Damage
    from analytics.dump.records.raw_records import Chunk, Spans
    from analytics.dump.records.segment_reader import Summary

NONE, GZIP, SNAPPY, LZ4, ZSTD = range(5)
CODECS = (NONE, GZIP, SNAPPY, LZ4, ZSTD)
LEGACY_CODECS = (NONE, GZIP, SNAPPY, LZ4)
NOW = 1_700_000_000_000
ABORT, COMMIT, LEADER_CHANGE = 0, 1, 2

LZ4_HEADER = b"\x04\x22\x4d\x18\x60\x40\x82"
LZ4_HEADER_OF_MAGIC_0 = b"\x04\x22\x4d\x18\x60\x40\x13"
"""Magic 0's header checksum is computed over the frame's magic too, which is wrong."""
XERIAL_HEADER = b"\x82SNAPPY\x00" + struct.pack(">ii", 1, 1)


class Record(NamedTuple):
    """One record as it should be read."""

    offset: int
    timestamp: int
    key: bytes | None
    value: bytes | None


@dataclass(frozen=True)
class Made:
    """Bytes of one batch (or of what stands between batches) and the records to read from it."""

    data: bytes
    records: tuple[Record, ...] = ()
    last_offset: int = -1


def records(first: int, number: int, timestamp: int = NOW, step: int = 1) -> list[Record]:
    """Some records with keys and values of different lengths, some null, from an offset on."""
    made = []
    for place in range(number):
        offset = first + place * step
        key = None if offset % 7 == 3 else b"key-%d" % offset
        value = None if offset % 5 == 2 else b"v" * (offset * 37 % 300)
        made.append(Record(offset, timestamp + place, key, value))
    return made


# --- codecs --------------------------------------------------------------------------------------


def compress(codec: int, data: bytes, magic: int = 2) -> bytes:
    """Compress as Kafka frames it."""
    header = LZ4_HEADER_OF_MAGIC_0 if magic == 0 else LZ4_HEADER
    frames: tuple[Callable[[bytes], bytes], ...] = (
        lambda plain: plain,
        lambda plain: gzip.compress(plain, mtime=0),
        xerial,
        lambda plain: lz4_frame(plain, header),
        zstd_stream,
    )
    return frames[codec](data)


def xerial(data: bytes, block: int = 100) -> bytes:
    """A stream of snappy blocks as xerial's library writes it."""
    parts = [XERIAL_HEADER]
    for start in range(0, len(data), block):
        packed = bytes(cramjam.snappy.compress_raw(data[start : start + block]))
        parts.append(struct.pack(">i", len(packed)) + packed)
    return b"".join(parts)


def lz4_frame(data: bytes, header: bytes = LZ4_HEADER, block: int = 64 << 10) -> bytes:
    """A frame of independent blocks without checksums; every other block stored as it is."""
    parts = [header]
    for number, start in enumerate(range(0, len(data), block)):
        plain = data[start : start + block]
        packed = bytes(cramjam.lz4.compress_block(plain, store_size=False))
        if number % 2 or len(packed) >= len(plain):
            parts.append(struct.pack("<I", len(plain) | 0x80000000) + plain)
        else:
            parts.append(struct.pack("<I", len(packed)) + packed)
    return b"".join([*parts, bytes(4)])


def zstd_stream(data: bytes) -> bytes:
    """A frame whose header does not say how large its content is."""
    stream = cramjam.zstd.Compressor()
    stream.compress(data)
    return bytes(stream.finish())


# --- magic 2 -------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Header:
    """Fields of a magic 2 header; None where they follow from the records."""

    base_offset: int | None = None
    last_offset: int | None = None
    leader_epoch: int = 0
    codec: int = NONE
    count: int | None = None
    base_timestamp: int | None = None
    max_timestamp: int | None = None
    append_time: int | None = None
    delete_horizon: int | None = None
    producer_id: int = -1
    producer_epoch: int = -1
    base_sequence: int = -1
    transactional: bool = False
    control: bool = False


def batch(
    held: Sequence[Record],
    header: Header = Header(),
    headers: Sequence[tuple[bytes, bytes | None]] = (),
) -> Made:
    """A sound batch; ``headers`` are put on every record."""
    base = held[0].offset if header.base_offset is None else header.base_offset
    start = _base_timestamp(held, header)
    encoded = b"".join(
        encode_record(
            each.offset - base, _wrapped(each.timestamp - start), each.key, each.value, headers
        )
        for each in held
    )
    data = seal(base, _filled(held, header, base, start), compress(header.codec, encoded))
    if header.append_time is not None:
        held = [each._replace(timestamp=header.append_time) for each in held]
    last = header.last_offset
    return Made(data, tuple(held), held[-1].offset if last is None else last)


def empty_batch(base_offset: int, last_offset: int, header: Header = Header()) -> Made:
    """What compaction leaves of a batch that a producer's state hangs on."""
    filled = replace(header, last_offset=last_offset, count=0, base_timestamp=-1, max_timestamp=-1)
    return Made(seal(base_offset, filled, b""), (), last_offset)


def control_batch(
    base_offset: int, kinds: Sequence[int], producer_id: int = 5, timestamp: int = NOW
) -> Made:
    """Markers; KRaft writes several into one batch."""
    held = [
        Record(offset, timestamp, struct.pack(">hh", 0, kind), struct.pack(">hi", 0, 3))
        for offset, kind in enumerate(kinds, base_offset)
    ]
    header = Header(producer_id=producer_id, producer_epoch=1, transactional=True, control=True)
    return batch(held, header)


def encode_record(
    offset_delta: int,
    timestamp_delta: int,
    key: bytes | None,
    value: bytes | None,
    headers: Sequence[tuple[bytes, bytes | None]] = (),
) -> bytes:
    """One record, its length before it."""
    body = b"\0" + varint(timestamp_delta) + varint(offset_delta) + sized(key) + sized(value)
    body += varint(len(headers))
    body += b"".join(sized(name) + sized(content) for name, content in headers)
    return varint(len(body)) + body


def sized(content: bytes | None) -> bytes:
    """Bytes with their length before them."""
    return varint(-1) if content is None else varint(len(content)) + content


def varint(value: int) -> bytes:
    """A zigzag varint."""
    left = value << 1 ^ value >> 63
    encoded = bytearray()
    while left > 0x7F:
        encoded.append(left & 0x7F | 0x80)
        left >>= 7
    return bytes([*encoded, left])


def seal(base_offset: int, header: Header, encoded: bytes) -> bytes:
    """A batch around whatever bytes, with a right checksum and nothing else made right."""
    attributes = header.codec | (header.append_time is not None) << 3
    attributes |= header.transactional << 4 | header.control << 5
    attributes |= (header.delete_horizon is not None) << 6
    last = base_offset if header.last_offset is None else header.last_offset
    covered = struct.pack(
        ">hiqqqhii",
        attributes,
        last - base_offset,
        NOW if header.base_timestamp is None else header.base_timestamp,
        NOW if header.max_timestamp is None else header.max_timestamp,
        header.producer_id,
        header.producer_epoch,
        header.base_sequence,
        1 if header.count is None else header.count,
    )
    covered += encoded
    head = (base_offset, len(covered) + 9, header.leader_epoch, 2, crc32c(covered))
    return struct.pack(">qiibI", *head) + covered


def _base_timestamp(held: Sequence[Record], header: Header) -> int:
    if header.delete_horizon is not None:
        return header.delete_horizon
    return held[0].timestamp if header.base_timestamp is None else header.base_timestamp


def _wrapped(number: int) -> int:
    """Return the number of 64 bits that Java's long arithmetic has instead."""
    return (number + (1 << 63)) % (1 << 64) - (1 << 63)


def _filled(held: Sequence[Record], header: Header, base: int, start: int) -> Header:
    largest = max(each.timestamp for each in held)
    append = header.append_time
    stored = largest if append is None else append
    return replace(
        header,
        base_offset=base,
        last_offset=held[-1].offset if header.last_offset is None else header.last_offset,
        count=len(held) if header.count is None else header.count,
        base_timestamp=start,
        max_timestamp=stored if header.max_timestamp is None else header.max_timestamp,
    )


# --- magic 0 and 1 -------------------------------------------------------------------------------


def message(record: Record, magic: int, attributes: int = 0) -> bytes:
    """One entry: offset, size, message."""
    body = struct.pack(">bb", magic, attributes)
    body += struct.pack(">q", record.timestamp) if magic else b""
    for content in (record.key, record.value):
        body += struct.pack(">i", -1 if content is None else len(content)) + (content or b"")
    sealed = struct.pack(">I", zlib.crc32(body)) + body
    return struct.pack(">qi", record.offset, len(sealed)) + sealed


def messages(held: Iterable[Record], magic: int) -> list[Made]:
    """Uncompressed messages: each is a batch of its own."""
    read = [each if magic else each._replace(timestamp=-1) for each in held]
    return [Made(message(each, magic), (each,), each.offset) for each in read]


def wrapper(
    held: Sequence[Record], magic: int, codec: int, append_time: int | None = None, first: int = -1
) -> Made:
    """A compressed message set.

    Args:
        held: Its records; holes between their offsets are kept.
        magic: 0 or 1.
        codec: Not zstd, which these formats never knew.
        append_time: The broker's timestamp, in magic 1.
        first: Offset that the relative ones count from; the first record's unless compaction took
            records before it.
    """
    base = held[0].offset if first < 0 else first
    relative = [each._replace(offset=each.offset - base) if magic else each for each in held]
    content = compress(codec, b"".join(message(each, magic) for each in relative), magic)
    last = held[-1].offset
    time = max(each.timestamp for each in held) if append_time is None else append_time
    attributes = codec | (append_time is not None) << 3
    data = message(Record(last, time, None, content), magic, attributes)
    read = [each._replace(timestamp=-1) for each in held] if magic == 0 else list(held)
    if append_time is not None:
        read = [each._replace(timestamp=append_time) for each in held]
    return Made(data, tuple(read), last)


# --- whole segments ------------------------------------------------------------------------------


def random_segment(seed: int, batches: int = 12, first: int = 0) -> list[Made]:
    """Batches of all kinds one after the other, offsets without holes between them."""
    draw = random.Random(seed)
    made: list[Made] = []
    offset = first
    while len(made) < batches:
        number = draw.choice((1, 1, 2, 3, 8, 70))
        held = records(offset, number, NOW + offset)
        made += draw.choice(_KINDS)(draw, held)
        offset += number
    return made


def _random_batch(draw: random.Random, held: list[Record]) -> list[Made]:
    header = Header(
        codec=draw.choice((NONE, NONE, NONE, GZIP, SNAPPY, LZ4, ZSTD)),
        leader_epoch=4,
        producer_id=draw.choice((-1, 12)),
        append_time=draw.choice((None, None, NOW + 5)),
        delete_horizon=draw.choice((None, None, NOW - 1000)),
    )
    headers = draw.choice(((), (), ((b"trace", b"1"), (b"", None))))
    return [batch(held, header, headers)]


def _random_wrapper(draw: random.Random, held: list[Record]) -> list[Made]:
    return [wrapper(held, draw.choice((0, 1)), draw.choice((GZIP, SNAPPY, LZ4)))]


def _random_messages(draw: random.Random, held: list[Record]) -> list[Made]:
    return messages(held[:3], draw.choice((0, 1))) + [batch(each) for each in [held[3:]] if each]


def _random_control(draw: random.Random, held: list[Record]) -> list[Made]:
    return [control_batch(held[0].offset, [draw.choice((ABORT, COMMIT)) for _ in held])]


_KINDS = (
    _random_batch,
    _random_batch,
    _random_batch,
    _random_wrapper,
    _random_messages,
    _random_control,
)


def joined(made: Iterable[Made]) -> bytes:
    """The bytes of a segment."""
    return b"".join(each.data for each in made)


def positions(made: Sequence[Made]) -> list[int]:
    """Where each begins, and where the last ends."""
    return list(itertools.accumulate((len(each.data) for each in made), initial=0))


# --- reading back --------------------------------------------------------------------------------


@dataclass
class Read:
    """All that a reader gave."""

    records: list[Record] = field(default_factory=list)
    damages: list[Damage] = field(default_factory=list)
    batches: list[dict[str, Any]] = field(default_factory=list)
    chunks: int = 0
    summary: Summary | None = None


def read_back(file: Any, options: ReadOptions = ReadOptions()) -> Read:  # noqa: B008
    """Read a file, or bytes, to the end."""
    reader: FileReader = read_segment(_opened(file), options)
    read = Read()
    for chunk in reader:
        read.chunks += 1
        read.records += records_of(chunk)
        read.damages += chunk.damages
        read.batches += batches_of(chunk)
    read.summary = reader.summary
    return read


def _opened(file: Any) -> Any:
    import io  # noqa: PLC0415

    return io.BytesIO(file) if isinstance(file, (bytes, bytearray)) else file


def records_of(chunk: Chunk) -> list[Record]:
    """The records of a chunk, one by one."""
    found = chunk.records
    data = found.data.tobytes()
    columns = (found.offset.tolist(), found.timestamp.tolist())
    rows = zip(*columns, _contents(data, found.key), _contents(data, found.value), strict=True)
    return [Record(*row) for row in rows]


def batches_of(chunk: Chunk) -> list[dict[str, Any]]:
    """The batch headers of a chunk, one by one."""
    columns = {name: column.tolist() for name, column in vars(chunk.records.batches).items()}
    rows = zip(*columns.values(), strict=True)
    return [dict(zip(columns, row, strict=True)) for row in rows]


def _contents(data: bytes, spans: Spans) -> list[bytes | None]:
    rows = zip(spans.start.tolist(), spans.length.tolist(), strict=True)
    return [None if length < 0 else data[start : start + length] for start, length in rows]
