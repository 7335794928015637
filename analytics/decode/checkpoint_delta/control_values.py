"""Control records to checkpoints and deltas.

The key of a control record is an int16 version and an int16 type, its value begins with an int16
version (``ControlRecordType``, ``EndTransactionMarker``). The seed shows the fields behind it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from analytics.decode.checkpoint_delta.chain_records import IDS, RECORDS, TABLES, Lost
from analytics.wire.arrow import invalid_rows, struct_type, to_array
from analytics.wire.columns import take
from analytics.wire.cursor import ByteBuffer, Cursor
from analytics.wire.decoder import dialect_reader
from analytics.wire.failure import Reason
from schemas.dialects import CHECKPOINT_DELTA, dialect_types

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from analytics.dump.records.raw_records import RawRecords

_KEY = np.dtype([("version", ">i2"), ("type", ">i2")])
_VERSION = np.dtype(">i2")


def chain_records(records: RawRecords) -> tuple[pa.Table, list[Lost]]:
    """Decode the records of control batches that are checkpoints or deltas.

    Returns:
        The columns `RECORDS`, in the order of the log; and what should be a record of the dialect
        and cannot be read, each alone.
    """
    buffer = ByteBuffer(records.data)
    has_type = records.key.length >= _KEY.itemsize
    number = buffer.gather(_KEY, np.where(has_type, records.key.start, 0))["type"]
    lost = _unreadable(records.offset[~has_type], "has no type")
    parts = []
    for kind, (id_, name) in enumerate(zip(IDS, TABLES, strict=True)):
        rows = np.flatnonzero(has_type & (number == id_))
        found, failed = _of_kind(records, rows, buffer, name)
        parts.append(_as_records(found, kind))
        lost += failed
    return pa.concat_tables(parts).sort_by("offset"), lost


def _of_kind(
    records: RawRecords, rows: NDArray[np.int64], buffer: ByteBuffer, name: str
) -> tuple[pa.Table, list[Lost]]:
    """Decode the values of one record type: its fields, and `offset`."""
    kind = dialect_types(CHECKPOINT_DELTA)[name]
    length = records.value.length[rows]
    versioned = length >= _VERSION.itemsize
    lost = _unreadable(records.offset[rows[~versioned]], f"{kind.name}: no version")
    rows = rows[versioned]
    start = records.value.start[rows]
    version = buffer.gather(_VERSION, start).astype(np.int64)
    parts = []
    for number in np.unique(version).tolist():
        chosen = rows[version == number]
        if number not in kind.versions:
            what = f"{kind.name}: version {number} is not known"
            lost += _unreadable(records.offset[chosen], what)
            continue
        cursor = Cursor.over(
            buffer,
            records.value.start[chosen] + _VERSION.itemsize,
            records.value.length[chosen] - _VERSION.itemsize,
        )
        column = dialect_reader(CHECKPOINT_DELTA, name, number).read(cursor)
        cursor.require_exhausted(Reason.TRAILING_BYTES, "")
        wanted = struct_type(kind.value)
        failed = cursor.dead | invalid_rows(column, wanted)
        lost += _unreadable(records.offset[chosen[failed]], f"{kind.name}: its bytes are no value")
        sound = np.flatnonzero(~failed)
        values = to_array(take(column, sound), wanted)
        columns = dict(zip(wanted.names, values.flatten(), strict=True))
        parts.append(pa.table({"offset": records.offset[chosen[sound]], **columns}))
    return (pa.concat_tables(parts) if parts else pa.table({"offset": pa.array([], "i8")})), lost


def _as_records(fields: pa.Table, kind: int) -> pa.Table:
    """Arrange the fields of a record type as `RECORDS`; those it does not have are null."""
    columns = {name: fields[name] for name in fields.column_names}
    columns["kind"] = pa.array(np.full(fields.num_rows, kind, np.int8))
    return pa.table(
        [
            columns[each.name].cast(each.type)
            if each.name in columns
            else pa.nulls(fields.num_rows, each.type)
            for each in RECORDS
        ],
        schema=RECORDS,
    )


def _unreadable(offsets: NDArray[np.int64], why: str) -> list[Lost]:
    return [
        Lost(each, each + 1, f"the control record at offset {each} cannot be read: {why}")
        for each in offsets.tolist()
    ]
