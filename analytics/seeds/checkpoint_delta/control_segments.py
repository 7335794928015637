"""Checkpoints and deltas of one data partition, as columns, out of its control batches."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from analytics.dump.batches.batch_bytes import DEFAULT_LIMITS
from analytics.dump.batches.headers import read_headers
from analytics.dump.batches.walks import walk_copy
from analytics.dump.copies.slices import log_start
from analytics.dump.files.model import MAX_OFFSET
from analytics.dump.files.storage import ByteSource
from analytics.dump.records.chunk_reader import ChunkReader
from analytics.wire.columns import invalid_rows, struct_type, take, to_array
from analytics.wire.cursor import ByteBuffer, Cursor, Reason
from analytics.wire.decoder import dialect_reader
from schemas.catalog import CHECKPOINT_DELTA, dialect_types

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import NDArray

    from analytics.dump.batches.headers import Headers
    from analytics.dump.batches.walks import CopyLog, SegmentWalk
    from analytics.dump.files.model import PartitionCopy
    from analytics.dump.records.raw_records import RawRecords

# Checkpoints and deltas of one data partition, as columns, and what of its log is not there.

CHECKPOINT, DELTA = 0, 1
TABLES = ("share_checkpoint", "share_delta")
"""Record types in the order of the kinds."""
IDS = tuple(dialect_types(CHECKPOINT_DELTA)[name].ids[0] for name in TABLES)

STATES = pa.list_(
    pa.struct(
        [
            ("base_offset", pa.int64()),
            ("last_offset", pa.int64()),
            ("state", pa.int8()),
            ("delivery_count", pa.int16()),
        ]
    )
)
RECORDS = pa.schema(
    [
        ("offset", pa.int64()),
        ("kind", pa.int8()),
        ("group_id", pa.string()),
        ("checkpoint_epoch", pa.int32()),
        ("back_offset", pa.int64()),  # null in a checkpoint
        ("start_offset", pa.int64()),  # null in a delta
        ("end_offset", pa.int64()),  # likewise
        ("states", STATES),
    ]
)


@dataclass(frozen=True, order=True)
class Lost:
    """Offsets at which there may have been records that cannot be seen.

    Attributes:
        first_offset: The first of them.
        end_offset: Behind the last; `MAX_OFFSET` where that is not known.
        why: In words.
    """

    first_offset: int
    end_offset: int = MAX_OFFSET
    why: str = ""


@dataclass(frozen=True)
class ChainLog:
    """What a data partition holds of the dialect.

    Attributes:
        topic: The topic's name.
        partition: The partition's number.
        records: Ascending by offset; the columns are `RECORDS`.
        topic_id: 22 characters, None where nothing names it.
        log_start_offset: What lies below is not the broker's any more.
        log_end_offset: One more than the last offset there is; None where only records are given.
        lost: What cannot be seen, ascending.
    """

    topic: str
    partition: int
    records: pa.Table = field(default_factory=RECORDS.empty_table)
    topic_id: str | None = None
    log_start_offset: int = 0
    log_end_offset: int | None = None
    lost: tuple[Lost, ...] = ()


# The segments of a data partition to checkpoints and deltas: of user topics control batches
# alone.
#
# Headers of all batches are walked and summed over, for where control batches lie and which
# offsets are missing; the records of data batches are not looked at.
#
# The key of a control record is an int16 version and an int16 type, its value begins with an
# int16 version (``ControlRecordType``, ``EndTransactionMarker``). The seed shows the fields
# behind it.

_WINDOW: Final = 4 << 20
"""Bytes of a file that are read at a time."""
_NEWEST: Final = 2
"""The only batch format that has control batches."""

_KEY = np.dtype([("version", ">i2"), ("type", ">i2")])
_VERSION = np.dtype(">i2")


def read_copy(partition: PartitionCopy) -> ChainLog:
    """Read one copy of a data partition; what lies below its log start is not the broker's."""
    log = walk_copy(partition, check_crc=True)
    start = log_start(partition)
    parts, lost = [RECORDS.empty_table()], _missing(log, start)
    for walk in log.walks:
        for found, failed in _read(walk):
            parts.append(found)
            lost += failed
    records = pa.concat_tables(parts)
    return ChainLog(
        partition.topic,
        partition.partition,
        records.filter(pc.greater_equal(records["offset"], start)).sort_by("offset"),
        partition.topic_id,
        start,
        log.end_offset,
        tuple(sorted(each for each in lost if each.end_offset > start)),
    )


def _read(walk: SegmentWalk) -> Iterator[tuple[pa.Table, list[Lost]]]:
    """Yield what the control batches of a file hold, some at a time."""
    headers = walk.headers
    headers = headers.take(headers.is_control & (headers.magic == _NEWEST))
    if not len(headers):
        return
    with ByteSource(walk.segment.path) as source:
        for chosen in _windows(headers):
            start = int(chosen.position[0])
            size = int(chosen.position[-1] + chosen.size[-1]) - start
            data = source.array(start, size)
            batches = read_headers(data, chosen.position - start, chosen.size, start)
            for chunk in ChunkReader(DEFAULT_LIMITS, _WINDOW).read(data, start, batches):
                found, lost = _chain_records(chunk.records)
                for each in chunk.damages:
                    row = np.flatnonzero(batches.position == each.position)[0]
                    first, last = int(batches.base_offset[row]), int(batches.last_offset[row])
                    why = f"the control batch at offset {first} cannot be read: {each.reason}"
                    lost.append(Lost(first, last + 1, why))
                yield found, lost


def _windows(headers: Headers) -> Iterator[Headers]:
    """Yield batches that lie near each other; at least one."""
    ends = headers.position + headers.size
    first = 0
    while first < len(headers):
        limit = int(headers.position[first]) + _WINDOW
        after = max(int(np.searchsorted(ends, limit, "right")), first + 1)
        yield headers.take(slice(first, after))
        first = after


def _missing(log: CopyLog, start: int) -> list[Lost]:
    """Return the offsets that no batch covers and that no cleaner has removed."""
    partition = log.partition
    headers = log.headers
    first = np.concatenate([[start], headers.last_offset + 1])
    end = np.concatenate([headers.base_offset, [log.end_offset]])
    cleaned = partition.first_dirty_offset or 0
    gaps = np.flatnonzero((end > np.maximum(first, start)) & (end > cleaned))
    lost = [
        Lost(max(int(first[each]), start), int(end[each]), "records are missing from the log")
        for each in gaps.tolist()
    ]
    if not partition.whole:
        lost.append(Lost(0, why="only some files of the log are given"))
    told = [(partition.high_watermark or 0, "its high watermark"), *partition.noted_ends]
    reached, who = max(told)
    if reached > log.end_offset:
        lost.append(Lost(log.end_offset, reached, f"the end of the log is missing: {who} shows it"))
    if max(partition.lost_segments, default=-1) >= log.end_offset:
        lost.append(Lost(log.end_offset, why="the last segment of the log is missing"))
    if log.walks and _ends_damaged(log):
        lost.append(Lost(log.end_offset, why="the end of the log is damaged"))
    lost += [
        Lost(walk.segment.base_offset, why=walk.unreadable)
        for walk in log.walks
        if walk.unreadable is not None
    ]
    return lost


def _ends_damaged(log: CopyLog) -> bool:
    """Whether damage lies behind the last batch that can be read."""
    walk = log.walks[-1]
    headers = walk.headers
    end = int(headers.position[-1] + headers.size[-1]) if len(headers) else 0
    return any(each.position >= end for each in walk.damages)


def _chain_records(records: RawRecords) -> tuple[pa.Table, list[Lost]]:
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
