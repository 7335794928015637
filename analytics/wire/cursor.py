"""A cursor over a buffer, one position a row; and the primitives that are read at it."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import DTypeLike, NDArray

    from analytics.wire.columns import Binary

# One position per row over one shared buffer.
#
# Reading a field reads it for every row and moves every position. A row that breaks a bound is
# marked dead, with its reason, and yields harmless values from then on; the others go on.

# Why a record could not be decoded, in enumerated words.


class Reason(StrEnum):
    """The ``reason`` column of the ``undecoded`` table, for records.

    Damage to whole batches has its own words in ``analytics.dump.batches.batch_bytes``.
    """

    NULL_KEY = "null_key"
    NULL_VALUE = "null_value"
    TRUNCATED = "truncated"
    UNKNOWN_RECORD_TYPE = "unknown_record_type"
    UNSUPPORTED_VERSION = "unsupported_version"
    UNKNOWN_FRAME_VERSION = "unknown_frame_version"
    UNEXPECTED_NULL = "unexpected_null"
    NEGATIVE_LENGTH = "negative_length"
    LENGTH_BEYOND_END = "length_beyond_end"
    VARINT_TOO_LONG = "varint_too_long"
    INVALID_UTF8 = "invalid_utf8"
    CONFLICTING_ROW = "conflicting_row"
    INVALID_ENCODING = "invalid_encoding"
    UNPLACED_ROW = "unplaced_row"
    TRAILING_BYTES = "trailing_bytes"
    REDPANDA_MEMBERS = "redpanda_members"
    REDPANDA_KEY = "redpanda_key"


_DEAD = -1
# A dead row reads from position 0, so the buffer must be as long as the widest fixed run.
_LEAST_BUFFER = 512


class ByteBuffer:
    """A byte buffer that can be read as any fixed-width type at any byte position."""

    def __init__(self, data: NDArray[np.uint8]) -> None:
        if data.size < _LEAST_BUFFER:
            data = np.concatenate([data, np.zeros(_LEAST_BUFFER - data.size, np.uint8)])
        self.data = np.ascontiguousarray(data)
        self._views: dict[np.dtype[Any], NDArray[Any]] = {}

    def gather(self, dtype: np.dtype[Any], position: NDArray[np.int64]) -> NDArray[Any]:
        """Read one ``dtype`` at each position; the positions need no alignment."""
        if dtype.fields:
            # Gathering opaque bytes and naming their parts afterwards is five times faster.
            return self.gather(np.dtype((np.void, dtype.itemsize)), position).view(dtype)
        view = self._views.get(dtype)
        if view is None:
            # Overlapping view: element i starts at byte i. One gather of n bytes costs the same
            # as one of 2 bytes, so neighbouring fixed fields are read as one element.
            size = self.data.size - dtype.itemsize + 1
            view = self._views[dtype] = np.ndarray((size,), dtype, self.data, strides=(1,))
        return view[position]


@dataclass(frozen=True)
class UnknownTags:
    """Tagged fields newer than the schema: one entry per row that carries this tag here."""

    row: NDArray[np.int64]
    path: str
    tag: NDArray[np.int64]
    start: NDArray[np.int64]
    length: NDArray[np.int64]


@dataclass
class Journal:
    """What the readers noticed about the records of one decode: failures and unknown tags."""

    failure: NDArray[np.int32]
    causes: list[tuple[Reason, str]] = field(default_factory=list)
    unknown_tags: list[UnknownTags] = field(default_factory=list)
    # Top-level strings that deeper fields depend on, by field name.
    scope: dict[str, Binary] = field(default_factory=dict)

    @classmethod
    def of(cls, records: int) -> Journal:
        """Start an empty journal for so many records."""
        return cls(np.full(records, -1, np.int32))

    def note(self, row: NDArray[np.int64], reason: Reason, path: str) -> None:
        """Remember the first failure of each record in ``row``."""
        first = row[self.failure[row] < 0]
        if first.size:
            self.failure[first] = len(self.causes)
            self.causes.append((reason, path))


class Cursor:
    """Positions of n rows in a buffer, each bounded by its own end (exclusive).

    While it is ``sound`` no row has failed, and none need be asked whether it has.
    """

    __slots__ = ("buffer", "end", "journal", "position", "row", "sound")

    def __init__(
        self,
        buffer: ByteBuffer,
        position: NDArray[np.int64],
        end: NDArray[np.int64],
        row: NDArray[np.int64],
        journal: Journal,
    ) -> None:
        self.buffer = buffer
        self.position = position
        self.end = end
        self.row = row
        self.journal = journal
        self.sound = True

    @classmethod
    def over(
        cls, buffer: ByteBuffer, start: NDArray[np.int64], length: NDArray[np.int64]
    ) -> Cursor:
        """Open a cursor over n spans with a new journal of n records."""
        row = np.arange(start.size, dtype=np.int64)
        return cls(buffer, start.copy(), start + length, row, Journal.of(start.size))

    @property
    def size(self) -> int:
        """Number of rows."""
        return self.position.size

    @property
    def dead(self) -> NDArray[np.bool_]:
        """Rows that have failed."""
        dead: NDArray[np.bool_] = self.end == _DEAD
        return dead

    @property
    def remaining(self) -> NDArray[np.int64]:
        """Bytes left in each row (not positive for dead rows)."""
        return self.end - self.position

    def fail(self, rows: NDArray[np.bool_], reason: Reason, path: str) -> None:
        """Mark rows dead; the first reason of a record is the one that is kept."""
        living = rows & (self.end != _DEAD)
        if living.any():
            self.journal.note(self.row[living], reason, path)
        self.position[rows] = 0
        self.end[rows] = _DEAD
        self.sound = False

    def claim(self, size: int | NDArray[np.int64], reason: Reason, path: str) -> NDArray[np.int64]:
        """Move past ``size`` (never negative) bytes and return where they start.

        Rows with fewer bytes left fail with ``reason``; their start is 0, which is safe to read
        for fixed runs.
        """
        start = self.position
        stop = start + size
        beyond = stop > self.end
        if beyond.any():
            self.position = start = start.copy()
            self.fail(beyond, reason, path)
            stop = np.where(beyond, 0, start + size)
        self.position = stop
        return start

    def gather(self, dtype: DTypeLike, reason: Reason, path: str) -> NDArray[Any]:
        """Read one fixed-width value of every row."""
        dtype = np.dtype(dtype)
        return self.buffer.gather(dtype, self.claim(dtype.itemsize, reason, path))

    def gather_if_all_have(self, dtype: np.dtype[Any]) -> NDArray[Any] | None:
        """Read one fixed-width value of every row; where one is short, read nothing: None."""
        start = self.position
        stop = start + dtype.itemsize
        if (stop > self.end).any():
            return None
        self.position = stop
        return self.buffer.gather(dtype, start)

    def select(self, rows: NDArray[np.int64]) -> Cursor:
        """Open a cursor over some of the rows, in that order, with the same journal."""
        part = Cursor(
            self.buffer, self.position[rows], self.end[rows], self.row[rows], self.journal
        )
        part.sound = self.sound
        return part

    def rejoin(self, rows: NDArray[np.int64], part: Cursor) -> None:
        """Take back the rows of ``select``: their positions, and who died."""
        self.position[rows] = part.position
        if part.sound:
            return
        dead = rows[part.dead]
        self.end[dead] = _DEAD
        self.position[dead] = 0
        self.sound = False

    def require_exhausted(self, reason: Reason, path: str) -> None:
        """Fail the living rows that have bytes left."""
        left = self.position != self.end
        if left.any() and (left := left & (self.end != _DEAD)).any():
            self.fail(left, reason, path)


# Wire types: one function per type, reading a whole column.
#
# Sizes and encodings are those of Kafka's protocol (``org.apache.kafka.common.protocol.types``):
# big-endian integers, unsigned varints of 7-bit groups, ``length + 1`` in compact types.

# Wire dtype and the dtype of the column, by Kafka's type name. A uuid stays 16 raw bytes.
WIRE_DTYPES = {
    "bool": np.dtype("?"),
    "int8": np.dtype("i1"),
    "int16": np.dtype(">i2"),
    "uint16": np.dtype(">u2"),
    "uint32": np.dtype(">u4"),
    "int32": np.dtype(">i4"),
    "int64": np.dtype(">i8"),
    "uuid": np.dtype("V16"),
}
COLUMN_DTYPES = {
    "bool": np.dtype("?"),
    "int8": np.dtype("i1"),
    "int16": np.dtype("i2"),
    "uint16": np.dtype("i4"),
    "uint32": np.dtype("i8"),
    "int32": np.dtype("i4"),
    "int64": np.dtype("i8"),
    "uuid": np.dtype("V16"),
}

_MORE = 0x80
_LOW_BITS = 0x7F
_VARINT_BYTES = 5
_INT32_MAX = 2**31 - 1


def read_unsigned_varint(cursor: Cursor, path: str) -> NDArray[np.int64]:
    """Read an unsigned varint of at most 5 bytes; values above 2^31-1 are refused."""
    data = cursor.buffer.data
    first = data.take(cursor.claim(1, Reason.TRUNCATED, path))
    value = first.astype(np.int64)
    if not first.size or int(first.max()) < _MORE:
        return value
    value &= _LOW_BITS
    rows = np.flatnonzero(first >= _MORE)
    for group in range(1, _VARINT_BYTES):
        part = cursor.select(rows)
        byte = data.take(part.claim(1, Reason.TRUNCATED, path)).astype(np.int64)
        cursor.rejoin(rows, part)
        value[rows] |= (byte & _LOW_BITS) << (7 * group)
        rows = rows[(byte >= _MORE) & ~part.dead]
        if not rows.size:
            break
    endless = value > _INT32_MAX
    endless[rows] = True
    if endless.any():
        cursor.fail(endless, Reason.VARINT_TOO_LONG, path)
    value[cursor.dead] = 0
    return value


def read_compact_length(cursor: Cursor, path: str) -> NDArray[np.int64]:
    """Read the length of a compact string, bytes or array: stored plus one, 0 is null (-1)."""
    return read_unsigned_varint(cursor, path) - 1


def checked_length(
    cursor: Cursor, length: NDArray[np.int64], path: str, *, nullable: bool
) -> NDArray[np.int64]:
    """Read any negative length as null (-1), as Kafka does; refuse it where null is not allowed.

    Rows that are refused get 0.
    """
    if not length.size or int(length.min()) >= 0:
        return length
    if nullable:
        return np.maximum(length, -1)
    below = length < -1
    if below.any():
        cursor.fail(below, Reason.NEGATIVE_LENGTH, path)
    null = length == -1
    if null.any():
        cursor.fail(null, Reason.UNEXPECTED_NULL, path)
    return np.maximum(length, 0)


def claim_content(
    cursor: Cursor, length: NDArray[np.int64], path: str
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Move past the content of strings or bytes; returns its spans, null as length -1."""
    null = length < 0
    start = cursor.claim(
        np.where(null, 0, length) if null.any() else length, Reason.LENGTH_BEYOND_END, path
    )
    if not cursor.sound:
        length = np.where(cursor.dead, 0, length)
    return start, length


def read_byte(cursor: Cursor, path: str) -> NDArray[np.int64]:
    """Read one signed byte."""
    start = cursor.claim(1, Reason.TRUNCATED, path)
    return cursor.buffer.data.take(start).view("i1").astype(np.int64)
