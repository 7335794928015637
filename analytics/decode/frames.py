"""Framing: which record type and version each record says it is, and where its fields begin.

``__consumer_offsets``, ``__share_group_state`` and ``__transaction_state`` put an int16 id before
the key and an int16 version before the value (``CoordinatorRecordSerde``); the metadata log has no
key and puts three varints before the value (``MetadataRecordSerde``): frame version, id, version.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from analytics.decode.failures import Failures
from analytics.wire.columns import distinct
from analytics.wire.cursor import Cursor
from analytics.wire.failure import Reason
from analytics.wire.primitives import read_unsigned_varint

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from analytics.dump.raw_records import RawRecords
    from analytics.wire.cursor import ByteBuffer

METADATA_TOPIC = "__cluster_metadata"
_INT16 = np.dtype(">i2")
_FRAME_VERSION = 1


@dataclass(frozen=True)
class Frames:
    """Records whose framing was understood.

    ``row`` is the index in the raw records; the spans are those of the bodies, behind the id and
    the version. A tombstone has version -1 and an empty body.
    """

    row: NDArray[np.int64]
    record_type: NDArray[np.int64]
    version: NDArray[np.int64]
    tombstone: NDArray[np.bool_]
    key_start: NDArray[np.int64]
    key_length: NDArray[np.int64]
    value_start: NDArray[np.int64]
    value_length: NDArray[np.int64]

    def take(self, index: NDArray[np.int64]) -> Frames:
        """Some of the records, in the order of the index."""
        if index.size == self.row.size and (index == np.arange(index.size)).all():
            return self
        return Frames(
            self.row[index],
            self.record_type[index],
            self.version[index],
            self.tombstone[index],
            self.key_start[index],
            self.key_length[index],
            self.value_start[index],
            self.value_length[index],
        )


def read_frames(
    topic: str, records: RawRecords, rows: NDArray[np.int64], buffer: ByteBuffer
) -> tuple[Frames, Failures]:
    """Read the framing of the data records in ``rows``."""
    if topic == METADATA_TOPIC:
        return _metadata_frames(records, rows, buffer)
    return _coordinator_frames(records, rows, buffer)


def _coordinator_frames(
    records: RawRecords, rows: NDArray[np.int64], buffer: ByteBuffer
) -> tuple[Frames, Failures]:
    failures = Failures()
    key_start, key_length = records.key.start[rows], records.key.length[rows]
    value_start, value_length = records.value.start[rows], records.value.length[rows]
    keyless = key_length < 0
    short_key = (key_length < _INT16.itemsize) & ~keyless
    failures.add(rows[keyless], Reason.NULL_KEY, "")
    failures.add(rows[short_key], Reason.TRUNCATED, "key: record type")
    good = ~(keyless | short_key)
    record_type = buffer.gather(_INT16, np.where(good, key_start, 0)).astype(np.int64)
    tombstone = value_length < 0
    short_value = good & ~tombstone & (value_length < _INT16.itemsize)
    for number in distinct(record_type[short_value]):
        broken = rows[short_value & (record_type == number)]
        failures.add(broken, Reason.TRUNCATED, f"record type {number}: version")
    good &= ~short_value
    at = np.where(good & ~tombstone, value_start, 0)
    version = np.where(tombstone, -1, buffer.gather(_INT16, at).astype(np.int64))
    frames = Frames(
        rows,
        record_type,
        version,
        tombstone,
        key_start + 2,
        key_length - 2,
        value_start + 2,
        np.where(tombstone, 0, value_length - 2),
    )
    return frames.take(np.flatnonzero(good)), failures


def _metadata_frames(
    records: RawRecords, rows: NDArray[np.int64], buffer: ByteBuffer
) -> tuple[Frames, Failures]:
    failures = Failures()
    start, length = records.value.start[rows], records.value.length[rows]
    null = length < 0
    failures.add(rows[null], Reason.NULL_VALUE, "")
    cursor = Cursor.over(buffer, start, np.maximum(length, 0))
    cursor.fail(null, Reason.NULL_VALUE, "")
    frame_version = read_unsigned_varint(cursor, "frame version")
    other = (frame_version != _FRAME_VERSION) & ~cursor.dead
    cursor.fail(other, Reason.UNKNOWN_FRAME_VERSION, "frame version")
    record_type = read_unsigned_varint(cursor, "record type")
    version = read_unsigned_varint(cursor, "version")
    failures.add_journal(cursor, np.where(null, -1, rows), "frame")
    good = np.flatnonzero(~cursor.dead)
    empty = np.zeros(good.size, np.int64)
    frames = Frames(
        rows[good],
        record_type[good],
        version[good],
        np.zeros(good.size, np.bool_),
        empty,
        empty,
        cursor.position[good],
        cursor.remaining[good],
    )
    return frames, failures
