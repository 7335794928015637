"""A Kafka log segment to raw records, whole, or a sample of its first ones.

Checksums over stretches of files.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, replace
from hashlib import sha256
from typing import TYPE_CHECKING, BinaryIO, Final, NamedTuple

import numpy as np

from analytics.dump.batches.batch_bytes import (
    CONTENT_LIMIT,
    DEFAULT_LIMITS,
    Damage,
    DamageReason,
    Limits,
    Summary,
)
from analytics.dump.batches.headers import Batches
from analytics.dump.batches.layout import Layout, lay_out, no_batches
from analytics.dump.batches.log_bounds import LogSense
from analytics.dump.files.model import SegmentFile
from analytics.dump.files.storage import ByteSource
from analytics.dump.records.chunk_reader import ChunkReader
from analytics.dump.records.raw_records import Chunk, RawRecords, Spans
from analytics.dump.records.redpanda_rows import may_be_redpandas, redpanda_rows
from analytics.errors import InputUnreadableError
from analytics.failed_reads import shrunk
from analytics.wire.cursor import ByteBuffer
from schemas import CLUSTER_METADATA, CONSUMER_OFFSETS

if TYPE_CHECKING:
    import os
    from _hashlib import HASH
    from collections.abc import Iterator

    from analytics.dump.files.model import Slice


# A Kafka log segment to raw records: the door of this package for bytes.
#
# First the whole slice's headers are walked and judged (`layout`), then its records are read
# chunk by chunk. Nothing is raised for data: what is not readable comes as `Damage`, and the
# bytes of batches, damages and tail add up to the bytes of the slice, always.

__all__ = [
    "CHUNK_BYTES",
    "FileReader",
    "ReadOptions",
    "SegmentReader",
    "Summary",
    "no_records",
    "read_segment",
]

CHUNK_BYTES: Final = 4 << 20
_UNKNOWN: Final = LogSense()
_CONTENT_CHUNKS: Final = 4
"""Bytes of damages that one chunk may carry, in chunks."""


@dataclass(frozen=True)
class ReadOptions:
    """How a segment is read.

    Attributes:
        from_position: First byte; a batch begins there.
        to_position: End of the slice, None the end of the file.
        chunk_bytes: Bytes of the file read at a time.
        check_crc: Sum over every batch; without, only where the chain of lengths breaks.
        keep_content: Give damages with their bytes.
        digest: Also compute the file's SHA-256.
        limits: What one batch may cost.
        sense: What is known of the log around the segment.
    """

    from_position: int = 0
    to_position: int | None = None
    chunk_bytes: int = CHUNK_BYTES
    check_crc: bool = True
    keep_content: bool = True
    digest: bool = False
    limits: Limits = DEFAULT_LIMITS
    sense: LogSense = _UNKNOWN


_DEFAULT: Final = ReadOptions()


class FileReader:
    """Reads one slice of one segment file.

    Attributes:
        summary: Complete once all chunks were taken.
    """

    def __init__(
        self, file: str | os.PathLike[str] | BinaryIO, options: ReadOptions = _DEFAULT
    ) -> None:
        """Take a local path, a URI, or an open seekable file, which stays the caller's."""
        self._file = file
        self._options = options
        self.summary = Summary()

    def __iter__(self) -> Iterator[Chunk]:
        return self.chunks()

    def chunks(self) -> Iterator[Chunk]:
        """Yield the slice's records and damages in file order.

        Raises:
            InputUnreadableError: The file cannot be opened or the disk refuses.
            ReadFailedError: A store or a network fails, or the file has become shorter than it was
                when the slice was planned.
        """
        self.summary = summary = Summary()
        options = self._options
        digest = options.digest and options.from_position == 0
        with ByteSource(self._file, digest=digest) as source:
            layout, summary.bytes_read = self._lay_out(source)
            summary.tail = layout.tail
            summary.implausible_epochs = layout.implausible_epochs
            if options.digest:
                summary.sha256_of_batches = self._digest_of_batches(source, layout)
            for chunk in self._chunks(source, layout):
                _check_size(source)
                summary.add(chunk)
                yield chunk
            if digest:
                summary.sha256 = source.sha256()
            _check_size(source)
        assert summary.reconciles, summary

    def _digest_of_batches(self, source: ByteSource, layout: Layout) -> str | None:
        """Return the SHA-256 of a slice to the end of its last batch; None where one is damaged.

        It is taken before records are read: of a file that changes meanwhile it is of what was
        there, and never of what took its place.
        """
        if layout.damages or not len(layout.batches):
            return None
        start, end = self._options.from_position, int(layout.batches.end[-1])
        # Walking the headers has summed up all of the file.
        is_whole = start == 0 and end == source.size
        return source.sha256() if is_whole else digest_between(source, start, end)

    def _lay_out(self, source: ByteSource) -> tuple[Layout, int]:
        options = self._options
        start = min(options.from_position, source.size)
        stop = source.size if options.to_position is None else options.to_position
        if stop > source.size:
            raise shrunk(source.name, source.size, stop)
        stop = max(stop, start)
        layout = lay_out(
            source, start, stop, options.sense, check_crc=options.check_crc, limits=options.limits
        )
        return layout, stop - start

    def _chunks(self, source: ByteSource, layout: Layout) -> Iterator[Chunk]:
        reader = ChunkReader(self._options.limits, self._options.chunk_bytes)
        waiting = _Waiting(layout.damages)
        for batches in stretches_to_read(layout.batches, self._options.chunk_bytes):
            start, end = int(batches.position[0]), int(batches.end[-1])
            if end - start > max(self._options.limits.max_batch_bytes, self._options.chunk_bytes):
                yield from self._loaded(source, [*waiting.before(end), _too_large(batches)])
                continue
            data = source.array(start, end - start)
            for chunk in reader.read(data, start, batches):
                found = chunk.damages
                if len(chunk.records.batches):
                    found = found + waiting.before(int(chunk.records.batches.end[-1]))
                yield from self._loaded(source, found, chunk.records)
        yield from self._loaded(source, waiting.before(source.size))

    def _loaded(
        self, source: ByteSource, damages: list[Damage], records: RawRecords | None = None
    ) -> Iterator[Chunk]:
        """Yield a chunk, and more where the damages carry many bytes."""
        most = _CONTENT_CHUNKS * self._options.chunk_bytes
        loaded: list[Damage] = []
        held = 0
        for damage in sorted(damages, key=lambda each: each.position):
            size = min(damage.size, CONTENT_LIMIT) if self._options.keep_content else 0
            if loaded and held + size > most:
                yield Chunk(no_records(), loaded)
                loaded, held = [], 0
            loaded.append(replace(damage, content=source.bytes(damage.position, size)))
            held += size
        if records is not None or loaded:
            yield Chunk(no_records() if records is None else records, loaded)


def _check_size(source: ByteSource) -> None:
    """Refuse zeros in the place of bytes that were there when the file was opened."""
    if source.shrank_to is not None:
        raise shrunk(source.name, source.shrank_to, source.size)


class SegmentReader(FileReader):
    """Reads one slice that a plan names."""

    def __init__(
        self,
        each: Slice,
        *,
        check_crc: bool = True,
        digest: bool = False,
        keep_content: bool = True,
    ) -> None:
        """Take the slice; which of its records are kept is the caller's."""
        options = ReadOptions(
            from_position=each.from_position,
            to_position=each.to_position,
            check_crc=check_crc,
            keep_content=keep_content,
            digest=digest,
            sense=each.sense,
        )
        super().__init__(each.segment.path, options)


def read_segment(
    file: str | os.PathLike[str] | BinaryIO, options: ReadOptions = _DEFAULT
) -> FileReader:
    """Return a reader of one slice of a segment: iterate over it, then see its ``summary``."""
    return FileReader(file, options)


def no_records() -> RawRecords:
    """Return a `RawRecords` without rows."""
    none = np.empty(0, np.int64)
    small = np.empty(0, np.int32)
    data = np.zeros(0, np.uint8)
    return RawRecords(
        data, no_batches(), small, none, none, small, Spans(none, none), Spans(none, none)
    )


class _Waiting:
    """Damages of the layout, given out with the records around them."""

    def __init__(self, damages: list[Damage]) -> None:
        self._damages = damages
        self._next = 0

    def before(self, position: int) -> list[Damage]:
        first = self._next
        while self._next < len(self._damages) and self._damages[self._next].position < position:
            self._next += 1
        return self._damages[first : self._next]


def stretches_to_read(batches: Batches, chunk_bytes: int = CHUNK_BYTES) -> Iterator[Batches]:
    """Yield batches that lie within ``chunk_bytes`` of each other; at least one."""
    ends = batches.end
    first = 0
    while first < len(batches):
        limit = int(batches.position[first]) + chunk_bytes
        after = max(int(np.searchsorted(ends, limit, "right")), first + 1)
        yield batches.take(slice(first, after))
        first = after


def _too_large(batches: Batches) -> Damage:
    size, count = int(batches.size[0]), int(batches.count[0])
    return Damage(
        int(batches.position[0]),
        size,
        DamageReason.BATCH_TOO_LARGE,
        f"claims {count} records",
        int(batches.base_offset[0]),
        records=max(min(count, size), 0),
    )


# A look at the first records of a file: which types and versions there are. A sample, no count.

SAMPLE_BYTES = 64 << 10
TOMBSTONE = -1

_FEATURE_LEVEL = 12
_METADATA_VERSION = b"metadata.version"


class Sampled(NamedTuple):
    """A record's type and its value's version; -1 is a tombstone."""

    topic: str
    record_type: int
    version: int


class Sample(NamedTuple):
    """What was seen.

    Attributes:
        kinds: Records by type and version.
        metadata_levels: Levels of the feature metadata.version.
        bytes_read: Of the files.
        of_redpanda: Records that Redpanda wrote, and no release of Kafka.
    """

    kinds: Counter[Sampled]
    metadata_levels: set[int]
    bytes_read: int
    of_redpanda: int = 0

    def add(self, other: Sample) -> Sample:
        """Return both together."""
        return Sample(
            self.kinds + other.kinds,
            self.metadata_levels | other.metadata_levels,
            self.bytes_read + other.bytes_read,
            self.of_redpanda + other.of_redpanda,
        )


def nothing_sampled() -> Sample:
    """Return a sample of nothing."""
    return Sample(Counter(), set(), 0)


def sample_segment(topic: str, segment: SegmentFile, end: int) -> Sample:
    """Look at the records of a file's first batches.

    Args:
        topic: Whose records they are.
        segment: The file.
        end: Where a batch ends, about `SAMPLE_BYTES` into the file.
    """
    sample = nothing_sampled()
    try:
        for records in _records(segment, end):
            read = _metadata if topic == CLUSTER_METADATA else _coordinator
            sample = sample.add(read(topic, records))
    except InputUnreadableError:
        # The walk has found it readable a moment ago; what changed since is noticed elsewhere.
        return sample
    return sample._replace(bytes_read=end)


def _records(segment: SegmentFile, end: int) -> Iterator[RawRecords]:
    options = ReadOptions(to_position=end, check_crc=False, keep_content=False)
    for chunk in FileReader(segment.path, options):
        yield chunk.records


def _coordinator(topic: str, records: RawRecords) -> Sample:
    """Read the int16 that keys and values begin with."""
    key, value = records.key, records.value
    data = ~records.batches.is_control[records.batch] & (key.length >= 2)
    of_redpanda = 0
    if topic == CONSUMER_OFFSETS:
        buffer = ByteBuffer(records.data)
        suspects = may_be_redpandas(records, np.flatnonzero(data), buffer)
        if suspects.size:
            other = redpanda_rows(records, suspects, buffer)
            data[other.keys] = data[other.members] = False
            of_redpanda = other.total
    types = _int16(records.data, key.start[data])
    stored = value.length[data]
    versions = np.where(stored >= 2, _int16(records.data, value.start[data]), TOMBSTONE)
    known = (stored < 0) | (stored >= 2)
    pairs = Counter(zip(types[known].tolist(), versions[known].tolist(), strict=True))
    return Sample(
        Counter({Sampled(topic, *pair): count for pair, count in pairs.items()}),
        set(),
        0,
        of_redpanda,
    )


def _metadata(topic: str, records: RawRecords) -> Sample:
    """Read the frame of metadata records: three unsigned varints (MetadataRecordSerde)."""
    data = ~records.batches.is_control[records.batch] & (records.value.length >= 3)
    starts, ends = records.value.start[data], (records.value.start + records.value.length)[data]
    kinds: Counter[Sampled] = Counter()
    levels = set()
    for start, end in zip(starts.tolist(), ends.tolist(), strict=True):
        content = records.data[start:end].tobytes()
        frame, api_key, version = content[:3]
        # All numbers known so far take one byte each.
        if frame == 1 and api_key < 0x80 and version < 0x80:
            kinds[Sampled(topic, api_key, version)] += 1
        if frame == 1 and api_key == _FEATURE_LEVEL:
            levels |= _metadata_level(content[3:])
    return Sample(kinds, levels, 0)


def _metadata_level(body: bytes) -> set[int]:
    """Return the level that a FeatureLevelRecord gives metadata.version, if it does."""
    name = bytes([len(_METADATA_VERSION) + 1]) + _METADATA_VERSION
    if not body.startswith(name) or len(body) < len(name) + 2:
        return set()
    return {int.from_bytes(body[len(name) : len(name) + 2])}


def _int16(
    data: np.ndarray[tuple[int], np.dtype[np.uint8]], at: np.ndarray[tuple[int], np.dtype[np.int64]]
) -> np.ndarray[tuple[int], np.dtype[np.int16]]:
    if not data.size:
        return np.empty(0, np.int16)
    high = data[at].astype(np.int16)
    return (high << 8) | data[np.minimum(at + 1, data.size - 1)]


_BLOCK: Final = 1 << 20


def add_bytes(sums: HASH, source: ByteSource, start: int, end: int) -> None:
    """Go on with a checksum over the bytes of a file from ``start`` to before ``end``."""
    block = memoryview(bytearray(_BLOCK))
    while start < end:
        piece = block[: end - start]
        source.fill(piece, start)
        sums.update(piece)
        start += len(piece)


def digest_between(source: ByteSource, start: int, end: int) -> str:
    """Return the SHA-256 of the bytes of a file from ``start`` to before ``end``."""
    sums = sha256()
    add_bytes(sums, source, start, end)
    return sums.hexdigest()
