"""Records of `__share_group_state` in two readings, which bytes alone may not tell apart.

An update of the text and one of a release have fields of the same widths: where one has state
epoch, snapshot epoch and start offset, the other has snapshot epoch, leader epoch and start offset.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from analytics.decode.records.frames import Frames, read_frames
from analytics.decode.records.values import in_order, read_values
from analytics.wire.arrow import invalid_rows, struct_type, to_array
from analytics.wire.columns import take
from analytics.wire.cursor import ByteBuffer, Cursor
from analytics.wire.decoder import dialect_reader, key_reader
from analytics.wire.failure import Reason
from schemas import SHARE_GROUP_STATE, record_type
from schemas.dialects import KIP_932_TEXT, dialect_types

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from analytics.dump.records.raw_records import RawRecords
    from schemas.model import RecordType

SNAPSHOT, UPDATE = 0, 1
TABLES = ("share_snapshot", "share_update")
"""Record types in the order of their ids."""


def share_readings(records: RawRecords) -> tuple[list[dict[str, Any]], int]:
    """Return columns by record type, and how many records are neither, or have no sound key.

    Returns:
        For each record type: `kind`, `offset`, `is_tombstone`, `key`, `text` and `released`; the
        last two are structs, null where the reading does not take all bytes.
    """
    rows = np.flatnonzero(~records.batches.is_control[records.batch])
    buffer = ByteBuffer(records.data)
    frames, failures = read_frames(SHARE_GROUP_STATE, records, rows, buffer)
    unread = failures.count
    found = []
    for number, table in enumerate(TABLES):
        ours = frames.take(np.flatnonzero(frames.record_type == number))
        kind = record_type(table)
        cursor = Cursor.over(buffer, ours.key_start, ours.key_length)
        key = key_reader(kind.name).read(cursor)
        cursor.require_exhausted(Reason.TRAILING_BYTES, "key")
        wanted = struct_type(kind.key)
        sound = np.flatnonzero(~(cursor.dead | invalid_rows(key, wanted)))
        unread += ours.row.size - sound.size
        ours = ours.take(sound)
        found.append(
            {
                "kind": number,
                "offset": records.offset[ours.row],
                "is_tombstone": ours.tombstone,
                "key": to_array(take(key, sound), wanted),
                "text": _text(table, ours, buffer),
                "released": _released(kind, ours, buffer),
            }
        )
    known = np.isin(frames.record_type, (SNAPSHOT, UPDATE))
    return found, unread + int((~known).sum())


def _text(table: str, frames: Frames, buffer: ByteBuffer) -> pa.Array:
    """Read values as the text has them."""
    kind = dialect_types(KIP_932_TEXT)[table]
    place = np.flatnonzero(~frames.tombstone & np.isin(frames.version, [0]))
    cursor = Cursor.over(buffer, frames.value_start[place], frames.value_length[place])
    column = dialect_reader(KIP_932_TEXT, table, 0).read(cursor)
    cursor.require_exhausted(Reason.TRAILING_BYTES, "")
    living = np.flatnonzero(~cursor.dead)
    values = to_array(take(column, living), struct_type(kind.value))
    return _spread(values, place[living], frames.row.size)


def _released(kind: RecordType, frames: Frames, buffer: ByteBuffer) -> pa.Array:
    """Read values as releases write them, in whichever of their layouts."""
    pieces, _failures = read_values(kind, frames, buffer)
    if not pieces:
        return pa.nulls(frames.row.size, struct_type(kind.value))
    place, column = in_order(pieces)
    values = to_array(column, struct_type(kind.value))
    living = np.flatnonzero(~frames.tombstone[place])
    return _spread(values.take(pa.array(living)), place[living], frames.row.size)


def _spread(values: pa.Array, place: NDArray[np.int64], size: int) -> pa.Array:
    """Return values at their places, and nulls elsewhere."""
    index = np.full(size, -1)
    index[place] = np.arange(place.size)
    return values.take(pa.array(index, mask=index < 0))
