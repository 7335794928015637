"""A look at the first records of a file: which types and versions there are. A sample, no count."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from analytics.dump.files.model import SegmentFile
from analytics.dump.records.redpanda_rows import may_be_redpandas, redpanda_rows
from analytics.dump.records.segment_reader import FileReader, ReadOptions
from analytics.errors import InputUnreadableError
from analytics.wire.cursor import ByteBuffer
from schemas import CLUSTER_METADATA, CONSUMER_OFFSETS

if TYPE_CHECKING:
    from collections.abc import Iterator

    from analytics.dump.records.raw_records import RawRecords

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
