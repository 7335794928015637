"""Rows of ``__consumer_offsets`` that Redpanda wrote, and no release of Kafka.

Offsets and groups without members are the same in both. Two are not (``group_metadata.cc`` of
redpanda-data/redpanda): members of a group begin with a version of their own, and old releases put
keys of tombstones behind their length, as four bytes whose lowest comes first.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

import numpy as np

from analytics.wire.cursor import ByteBuffer, Cursor, Reason
from schemas import record_type
from schemas.catalog import REDPANDA, dialect_types

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from analytics.dump.records.raw_records import RawRecords
    from analytics.wire.structs import StructReader

MEMBERS: Final = "group_metadata: Redpanda puts a version before each member"
KEYS: Final = "a tombstone's key behind its length, as old releases of Redpanda wrote it"
REDPANDAS: Final = (Reason.REDPANDA_MEMBERS, Reason.REDPANDA_KEY)
_GROUPS, _COMMITS = "group_metadata", "offset_commit"
_REDPANDAS: Final = "redpanda_group_metadata"
_VERSIONS: Final = dialect_types(REDPANDA)[_REDPANDAS].versions
_TIMED: Final = 2
"""The first version with the time of the group's state."""
_INT16, _INT32, _LENGTH = np.dtype(">i2"), np.dtype(">i4"), np.dtype("<i4")


def said_of_redpanda(records: int) -> str:
    """Return in words what so many such records are."""
    return (
        f"{records:,} records as Redpanda writes them and Kafka does not (groups with members, "
        f"keys of tombstones behind their length)"
    )


class RedpandaRows(NamedTuple):
    """Rows that only Redpanda writes, ascending.

    Attributes:
        members: Values of groups with members.
        keys: Keys of tombstones behind their length.
    """

    members: NDArray[np.int64]
    keys: NDArray[np.int64]

    @property
    def total(self) -> int:
        """How many there are."""
        return self.members.size + self.keys.size


def may_be_redpandas(
    records: RawRecords, rows: NDArray[np.int64], buffer: ByteBuffer
) -> NDArray[np.int64]:
    """Return those of some records of which `redpanda_rows` may say so; it costs little to ask.

    Where Kafka has the length of the first member's id, Redpanda has a version from 0 to 3.

    Args:
        records: Raw records.
        rows: Those that are looked at, none of them a marker.
        buffer: Their bytes.
    """
    wrapped = rows[_is_behind_its_length(records, rows, buffer)]
    rows, number = _group_values(records, rows, buffer)
    at, end = records.value.start[rows] + _INT16.itemsize, _ends(records, rows)
    at = _after_text(buffer, at, end) + _INT32.itemsize
    for _ in ("protocol", "leader"):
        at = _after_text(buffer, at, end)
    at += np.where(number >= _TIMED, 8, 0)
    is_there = at + _INT32.itemsize + _INT16.itemsize <= end
    rows, at = rows[is_there], at[is_there]
    has_members = buffer.gather(_INT32, at) > 0
    version = buffer.gather(_INT16, at + _INT32.itemsize)
    is_one = has_members & (version >= _VERSIONS.first) & (version <= _VERSIONS.last)
    return np.union1d(wrapped, rows[is_one])


def _after_text(
    buffer: ByteBuffer, at: NDArray[np.int64], end: NDArray[np.int64]
) -> NDArray[np.int64]:
    """Return where strings end that begin at places, or the ends of their values."""
    length = buffer.gather(_INT16, np.minimum(at, end - _INT16.itemsize)).astype(np.int64)
    return np.minimum(at + _INT16.itemsize + np.maximum(length, 0), end)


def _ends(records: RawRecords, rows: NDArray[np.int64]) -> NDArray[np.int64]:
    return records.value.start[rows] + records.value.length[rows]


def redpanda_rows(records: RawRecords, rows: NDArray[np.int64], buffer: ByteBuffer) -> RedpandaRows:
    """Return which of some records of ``__consumer_offsets`` only Redpanda writes.

    What can be read as Kafka's is Kafka's.

    Args:
        records: Raw records.
        rows: Those that are looked at, none of them a marker.
        buffer: Their bytes.
    """
    return RedpandaRows(_members(records, rows, buffer), _keys(records, rows, buffer))


def _members(records: RawRecords, rows: NDArray[np.int64], buffer: ByteBuffer) -> NDArray[np.int64]:
    # Arrow is heavy: a dump is looked into without it.
    from analytics.wire.decoder import dialect_reader, value_reader  # noqa: PLC0415

    rows, version = _group_values(records, rows, buffer)
    found = np.zeros(rows.size, np.bool_)
    for number in range(_VERSIONS.first, _VERSIONS.last + 1):
        ours = np.flatnonzero(version == number)
        at = records.value.start[rows[ours]] + _INT16.itemsize
        size = records.value.length[rows[ours]] - _INT16.itemsize
        found[ours] = _fits(dialect_reader(REDPANDA, _REDPANDAS, number), buffer, at, size)
        found[ours] &= ~_fits(value_reader(_GROUPS, number, None), buffer, at, size)
    return rows[found]


def _group_values(
    records: RawRecords, rows: NDArray[np.int64], buffer: ByteBuffer
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return which records have a value of a classic group, and its version."""
    key, value = records.key, records.value
    least = _INT16.itemsize
    rows = rows[(key.length[rows] >= least) & (value.length[rows] >= least)]
    rows = rows[buffer.gather(_INT16, key.start[rows]) == record_type(_GROUPS).ids[0]]
    return rows, buffer.gather(_INT16, value.start[rows]).astype(np.int64)


def _keys(records: RawRecords, rows: NDArray[np.int64], buffer: ByteBuffer) -> NDArray[np.int64]:
    # Arrow is heavy: a dump is looked into without it.
    from analytics.wire.decoder import key_reader  # noqa: PLC0415

    rows = rows[_is_behind_its_length(records, rows, buffer)]
    at = records.key.start[rows] + _LENGTH.itemsize + _INT16.itemsize
    size = records.key.length[rows] - _LENGTH.itemsize - _INT16.itemsize
    number = buffer.gather(_INT16, at - _INT16.itemsize)
    found = np.zeros(rows.size, np.bool_)
    for name in (_COMMITS, _GROUPS):
        ours = np.flatnonzero(np.isin(number, record_type(name).ids))
        found[ours] = _fits(key_reader(name), buffer, at[ours], size[ours])
    return rows[found]


def _is_behind_its_length(
    records: RawRecords, rows: NDArray[np.int64], buffer: ByteBuffer
) -> NDArray[np.bool_]:
    """Whether a tombstone's key is all that the four bytes that it begins with say."""
    start, length = records.key.start[rows], records.key.length[rows]
    found = (records.value.length[rows] < 0) & (length >= _LENGTH.itemsize + _INT16.itemsize)
    told = buffer.gather(_LENGTH, np.where(found, start, 0))
    found &= told == length - _LENGTH.itemsize
    return found


def _fits(
    reader: StructReader, buffer: ByteBuffer, start: NDArray[np.int64], length: NDArray[np.int64]
) -> NDArray[np.bool_]:
    """Whether spans are read to their ends exactly."""
    cursor = Cursor.over(buffer, start, length)
    reader.read(cursor)
    cursor.require_exhausted(Reason.TRAILING_BYTES, "")
    return ~cursor.dead
