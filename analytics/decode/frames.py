"""Framing: which type and version each record says it is; a buffer for types that are few."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

import numpy as np

from analytics.dump.batches.headers import Batches
from analytics.dump.records.raw_records import PADDING, RawRecords, Spans
from analytics.wire.columns import distinct
from analytics.wire.cursor import Cursor, Reason, read_unsigned_varint
from schemas import CLUSTER_METADATA

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from analytics.wire.cursor import ByteBuffer


# A buffer for records of tables that a chunk has few of; later ones are decoded with them.
#
# Decoding a record type costs the same for ten records as for a thousand. Most chunks of an
# offsets log are commits and a handful of group records; those wait here, copied out of their
# chunk.

FEW: Final = 2_000
"""A chunk with fewer rows of a table buffers them."""
MOST_ROWS: Final = 8_000
"""The buffer is full with so many rows; the last chunk may add more."""
_MOST_BYTES: Final = 4 << 20


@dataclass
class RowBuffer:
    """Records that wait to be decoded, in log order for each table."""

    parts: list[RawRecords] = field(default_factory=list)
    tables: set[str] = field(default_factory=set)

    def is_room_for(self, table: str, rows: int) -> bool:
        """Whether so many rows of a table are to wait; behind others that wait, all of them do."""
        return rows < FEW or table in self.tables

    def add(self, table: str, records: RawRecords, rows: NDArray[np.int64]) -> None:
        """Copy records, so that their chunk can go."""
        self.parts.append(_copied(records, rows))
        self.tables.add(table)

    @property
    def is_full(self) -> bool:
        """Whether enough wait to be decoded."""
        rows = sum(len(part) for part in self.parts)
        return rows >= MOST_ROWS or sum(part.data.size for part in self.parts) >= _MOST_BYTES

    def release(self) -> RawRecords:
        """Give out all that wait; at least one."""
        parts, self.parts, self.tables = self.parts, [], set()
        return _joined(parts)


def _copied(records: RawRecords, rows: NDArray[np.int64]) -> RawRecords:
    """Return some records in a buffer of their own: their keys and values, nothing else."""
    batch, number = np.unique(records.batch[rows], return_inverse=True)
    key, value = records.key.take(rows), records.value.take(rows)
    lengths = np.maximum(np.column_stack([key.length, value.length]).ravel(), 0)
    starts = np.column_stack([key.start, value.start]).ravel()
    after = np.cumsum(lengths)
    view = records.data.data
    spans = zip(starts.tolist(), (starts + lengths).tolist(), strict=True)
    return RawRecords(
        data=np.frombuffer(b"".join([view[start:end] for start, end in spans]), np.uint8),
        batches=records.batches.take(batch),
        batch=number.astype(np.int32),
        offset=records.offset[rows],
        timestamp=records.timestamp[rows],
        record_bytes=records.record_bytes[rows],
        key=Spans((after - lengths)[0::2], key.length),
        value=Spans((after - lengths)[1::2], value.length),
    )


def _joined(parts: list[RawRecords]) -> RawRecords:
    bytes_before = np.cumsum([0, *(part.data.size for part in parts)])[:-1].tolist()
    batches_before = np.cumsum([0, *(len(part.batches) for part in parts)])[:-1].tolist()
    return RawRecords(
        data=np.concatenate([*(part.data for part in parts), np.zeros(PADDING, np.uint8)]),
        batches=Batches.concatenate([part.batches for part in parts]),
        batch=np.concatenate(
            [part.batch + before for part, before in zip(parts, batches_before, strict=True)],
            dtype=np.int32,
        ),
        offset=np.concatenate([part.offset for part in parts]),
        timestamp=np.concatenate([part.timestamp for part in parts]),
        record_bytes=np.concatenate([part.record_bytes for part in parts]),
        key=_shifted([part.key for part in parts], bytes_before),
        value=_shifted([part.value for part in parts], bytes_before),
    )


def _shifted(parts: list[Spans], before: list[int]) -> Spans:
    starts = [part.start + shift for part, shift in zip(parts, before, strict=True)]
    return Spans(np.concatenate(starts), np.concatenate([part.length for part in parts]))


# Framing: which record type and version each record says it is, and where its fields begin.
#
# ``__consumer_offsets``, ``__share_group_state`` and ``__transaction_state`` put an int16 id
# before the key and an int16 version before the value (``CoordinatorRecordSerde``); the metadata
# log has no key and puts three varints before the value (``MetadataRecordSerde``): frame version,
# id, version.

# Records that could not be decoded: which, why, and where in the record.


@dataclass
class Failures:
    """Failed raw records, with an enumerated reason and a detail in words."""

    rows: list[NDArray[np.int64]] = field(default_factory=list)
    reasons: list[str] = field(default_factory=list)
    details: list[str] = field(default_factory=list)

    def add(self, rows: NDArray[np.int64], reason: Reason, detail: str) -> None:
        """Note raw records that failed for one reason."""
        if rows.size:
            self.rows.append(rows)
            self.reasons.append(str(reason))
            self.details.append(detail)

    def add_journal(self, cursor: Cursor, rows: NDArray[np.int64], what: str) -> None:
        """Note what a cursor's journal has; ``rows`` maps its rows to raw records (-1: skip)."""
        failure = cursor.journal.failure
        for number in distinct(failure[failure >= 0]):
            reason, path = cursor.journal.causes[number]
            failed = rows[failure == number]
            detail = f"{what}: {path}" if path else what
            self.add(failed[failed >= 0], reason, detail)

    def take_over(self, rows: NDArray[np.int64], reason: Reason, detail: str) -> None:
        """Give records that are noted already, and nothing else, another reason."""
        noted = zip(self.rows, self.reasons, self.details, strict=True)
        left = [(each[~np.isin(each, rows)], why, what) for each, why, what in noted]
        self.rows, self.reasons, self.details = [], [], []
        for each, why, what in left:
            if each.size:
                self.rows.append(each)
                self.reasons.append(why)
                self.details.append(what)
        self.add(rows, reason, detail)

    def extend(self, other: Failures) -> None:
        """Take over another list."""
        self.rows.extend(other.rows)
        self.reasons.extend(other.reasons)
        self.details.extend(other.details)

    @property
    def count(self) -> int:
        """Number of records."""
        return sum(rows.size for rows in self.rows)


_INT16 = np.dtype(">i2")
_FRAME_VERSION = 1
TOMBSTONE = -1


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
        """Some of the records; the index ascends."""
        if index.size == self.row.size:  # an index names no record twice, in ascending order
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
    if topic == CLUSTER_METADATA:
        return _metadata_frames(records, rows, buffer)
    return _coordinator_frames(records, rows, buffer)


def _coordinator_frames(
    records: RawRecords, rows: NDArray[np.int64], buffer: ByteBuffer
) -> tuple[Frames, Failures]:
    failures = Failures()
    key, value = records.key, records.value
    if rows.size < len(records):
        key, value = key.take(rows), value.take(rows)
    key_start, key_length = key.start, key.length
    value_start, value_length = value.start, value.length
    typed = key_length >= _INT16.itemsize
    if not typed.all():
        failures.add(rows[key_length < 0], Reason.NULL_KEY, "")
        failures.add(rows[~typed & (key_length >= 0)], Reason.TRUNCATED, "key: record type")
        key_start = np.where(typed, key_start, 0)
    record_type = buffer.gather(_INT16, key_start).astype(np.int64)
    tombstone = value_length < 0
    versioned = value_length >= _INT16.itemsize
    good = typed
    if not versioned.all():
        cut = typed & ~versioned & ~tombstone
        for number in distinct(record_type[cut]):
            broken = rows[cut & (record_type == number)]
            failures.add(broken, Reason.TRUNCATED, f"record type {number}: version")
        value_start = np.where(versioned, value_start, 0)
        good = typed & ~cut
    version = buffer.gather(_INT16, value_start).astype(np.int64)
    value_length = value_length - _INT16.itemsize
    if tombstone.any():
        version[tombstone] = TOMBSTONE
        value_length[tombstone] = 0
    frames = Frames(
        rows,
        record_type,
        version,
        tombstone,
        key_start + _INT16.itemsize,
        key_length - _INT16.itemsize,
        value_start + _INT16.itemsize,
        value_length,
    )
    return (frames if good.all() else frames.take(np.flatnonzero(good))), failures


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
