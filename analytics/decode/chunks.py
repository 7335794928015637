"""One chunk of raw records to Arrow batches, one per table.

Control records are transaction markers and, in the metadata log, leader changes and snapshots.
Key: int16 version, int16 type. COMMIT and ABORT have int16 version and int32 coordinator epoch in
their value (``EndTransactionMarker``); the producer is that of the batch.

What could not be decoded is kept in ``undecoded``, with its bytes and its reason.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from analytics.decode.frames import Failures, Frames, read_frames
from analytics.decode.selection import Selection
from analytics.decode.tables import (
    CONTROL_MARKERS,
    UNDECODED,
    Origin,
    Piece,
    decoded_schema,
    in_order,
    label,
    labels,
    may_hold_secrets,
    read_values,
    surroundings,
    table_of,
    text_failures,
    unknown_tags_array,
    without_bytes,
    without_secrets,
)
from analytics.dump.records.redpanda_rows import KEYS, MEMBERS, redpanda_rows
from analytics.wire.columns import (
    Binary,
    Column,
    Fixed,
    Group,
    binary_array,
    counted,
    distinct,
    invalid_rows,
    struct_array,
    struct_type,
    take,
)
from analytics.wire.cursor import ByteBuffer, Cursor, Reason
from analytics.wire.decoder import key_reader
from schemas import CONSUMER_OFFSETS, record_types
from schemas.releases import FieldEvidence, field_evidence, record_evidence

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from analytics.decode.frames import RowBuffer
    from analytics.dump.batches.batch_bytes import Damage
    from analytics.dump.records.raw_records import RawRecords
    from schemas.model import RecordType


CONTROL_TABLE = "control_markers"
UNDECODED_TABLE = "undecoded"
DECODED = "decoded"
_FILTERED = "filtered"
EVERYTHING = Selection()
_NO_ROWS = np.zeros(0, np.int64)

# ControlRecordType; a number without a word stands for itself.
_CONTROL_TYPES = {
    0: "ABORT",
    1: "COMMIT",
    2: "LEADER_CHANGE",
    3: "SNAPSHOT_HEADER",
    4: "SNAPSHOT_FOOTER",
    5: "KRAFT_VERSION",
    6: "KRAFT_VOTERS",
}
_TRANSACTION_ENDS = (0, 1)
_KEY = np.dtype([("version", ">i2"), ("type", ">i2")])
_END = np.dtype([("version", ">i2"), ("epoch", ">i4")])
_INT32_MAX = 2**31 - 1


class RecordKind(NamedTuple):
    """What the manifest counts records by; version -1 is a tombstone."""

    record_type: int
    version: int
    layout: str | None


@dataclass
class Decoded:
    """Arrow batches by table, and where every record went.

    ``record_bytes`` are those of the records, uncompressed, by `DECODED`, `CONTROL_TABLE`,
    `UNDECODED_TABLE` or the rule that left them out. ``kinds_left_out`` and ``fields_left_out``
    are what records that a filter left out show of the release: no filter changes which it is.
    """

    batches: dict[str, pa.RecordBatch] = field(default_factory=dict)
    kinds: Counter[RecordKind] = field(default_factory=Counter)
    left_out: Counter[str] = field(default_factory=Counter)
    undecoded: Counter[str] = field(default_factory=Counter)
    record_bytes: Counter[str] = field(default_factory=Counter)
    kinds_left_out: set[RecordKind] = field(default_factory=set)
    fields_left_out: set[FieldEvidence] = field(default_factory=set)

    def add(self, table: str, batch: pa.RecordBatch) -> None:
        """Keep a batch that has rows."""
        if batch.num_rows:
            self.batches[table] = batch


def decode_chunk(
    records: RawRecords,
    damages: Sequence[Damage],
    origin: Origin,
    selection: Selection = EVERYTHING,
    tables: frozenset[str] | None = None,
    refused: Failures | None = None,
    row_buffer: RowBuffer | None = None,
) -> Decoded:
    """Decode raw records of one partition; every record ends in one table or under one rule.

    ``tables`` names the tables that are wanted, None all of them; records of the others are
    counted under ``filtered``. ``refused`` are records that are not decoded but kept among the
    undecoded: those that contradict another one of the same offset, say. ``row_buffer``, where
    given, takes the records of tables that there are few of; its owner has them decoded later.
    """
    decoder = _ChunkDecoder(records, origin, selection, tables, row_buffer)
    return decoder.decode(damages, refused)


class _ChunkDecoder:
    def __init__(
        self,
        records: RawRecords,
        origin: Origin,
        selection: Selection,
        tables: frozenset[str] | None,
        row_buffer: RowBuffer | None,
    ) -> None:
        self.records = records
        self.origin = origin
        self.selection = selection
        self.tables = tables
        self.row_buffer = row_buffer
        self.buffer = ByteBuffer(records.data)
        self.decoded = Decoded()
        self.failures = Failures()

    def decode(self, damages: Sequence[Damage], refused: Failures | None) -> Decoded:
        self._data(self._data_rows(refused))
        if self.failures.count and self.origin.topic == CONSUMER_OFFSETS:
            self._name_other_brokers()
        for rows, reason in zip(self.failures.rows, self.failures.reasons, strict=True):
            self.decoded.undecoded[reason] += rows.size
            self._weigh(UNDECODED_TABLE, rows)
        batches: list[pa.RecordBatch] = []
        if self.failures.count:
            batches.append(
                _undecoded_records(self.records, self.failures, self.buffer, self.origin)
            )
        if damages:
            batches.append(_undecoded_damages(damages, self.origin))
        if batches:
            self._keep(UNDECODED_TABLE, pa.concat_batches(batches))
        return self.decoded

    def _name_other_brokers(self) -> None:
        """Say of what does not decode if another broker wrote it."""
        failed = np.unique(np.concatenate(self.failures.rows))
        failed = failed[~self.records.batches.is_control[self.records.batch[failed]]]
        found = redpanda_rows(self.records, failed, self.buffer)
        for rows, reason, what in (
            (found.members, Reason.REDPANDA_MEMBERS, MEMBERS),
            (found.keys, Reason.REDPANDA_KEY, KEYS),
        ):
            if rows.size:
                self.failures.take_over(rows, reason, what)

    def _data_rows(self, refused: Failures | None) -> NDArray[np.int64]:
        """Decode control records and note what is refused; return the rows of all others."""
        is_control = self.records.batches.is_control
        if refused is None and not is_control.any():
            return np.arange(len(self.records))
        control = is_control[self.records.batch]
        if control.any():
            self._control(np.flatnonzero(control))
        data = ~control
        if refused is not None:
            data[np.concatenate([_NO_ROWS, *refused.rows])] = False
            self.failures.extend(refused)
        return np.flatnonzero(data)

    def _keep(self, table: str, batch: pa.RecordBatch) -> None:
        if self.tables is None or table in self.tables:
            self.decoded.add(table, batch)
        else:
            self.decoded.left_out[_FILTERED] += batch.num_rows

    def _weigh(self, fate: str, rows: NDArray[np.int64]) -> None:
        self.decoded.record_bytes[fate] += int(self.records.record_bytes[rows].sum(dtype=np.int64))

    def _control(self, rows: NDArray[np.int64]) -> None:
        batch, failures = _decode_control(self.records, rows, self.buffer, self.origin)
        self.failures.extend(failures)
        failed = np.concatenate([_NO_ROWS, *failures.rows])
        self._weigh(CONTROL_TABLE, np.setdiff1d(rows, failed, assume_unique=True))
        self._keep(CONTROL_TABLE, batch)

    def _data(self, rows: NDArray[np.int64]) -> None:
        frames, failures = read_frames(self.origin.topic, self.records, rows, self.buffer)
        self.failures.extend(failures)
        kinds = record_types(self.origin.topic)
        by_table: dict[str, list[int]] = {}
        numbers_here = distinct(frames.record_type)
        for number in numbers_here:
            kind = kinds.get(number)
            if kind is None:
                unknown = frames.row[frames.record_type == number]
                self.failures.add(unknown, Reason.UNKNOWN_RECORD_TYPE, f"record type {number}")
            elif kind.read != "decode":
                rule, here = f"unselected_type:{number}", frames.row[frames.record_type == number]
                self.decoded.left_out[rule] += here.size
                self._weigh(rule, here)
            else:
                by_table.setdefault(kind.table, []).append(number)
        for numbers in by_table.values():
            kind = kinds[numbers[0]]
            ours = frames
            if len(numbers) < len(numbers_here):
                masks = [frames.record_type == number for number in numbers]
                ours = frames.take(np.flatnonzero(np.logical_or.reduce(masks)))
            if self.tables is not None and kind.table not in self.tables:
                self.decoded.left_out[_FILTERED] += ours.row.size
                self._weigh(_FILTERED, ours.row)
            elif self.row_buffer is not None and self.row_buffer.is_room_for(
                kind.table, ours.row.size
            ):
                self.row_buffer.add(kind.table, self.records, ours.row)
            else:
                self._record_type(kind, ours)

    def _record_type(self, kind: RecordType, frames: Frames) -> None:
        key: Column | None = None
        if kind.key.fields:
            frames, key = self._keys(kind, frames)
        pieces, failures = read_values(kind, frames, self.buffer)
        self.failures.extend(failures)
        if not pieces:
            return
        place, value = in_order(pieces)
        if key is not None:
            key = take(key, place) if place.size < frames.row.size else key
        layout = _layouts(frames.row.size, pieces)[place]
        frames = frames.take(place)
        columns = self._columns(kind, frames, layout)
        columns["unknown_tags"] = unknown_tags_array(pieces, place, self.buffer)
        try:
            arrays = _struct_columns(kind, key, value)
        except pa.ArrowInvalid:
            good = self._without_bad_text(kind, frames.row, key, value)
            key = None if key is None else take(key, good)
            arrays = _struct_columns(kind, key, take(value, good))
            columns = {name: column.take(pa.array(good)) for name, column in columns.items()}
            frames, layout = frames.take(good), layout[good]
        self.decoded.kinds += _kinds(kind, frames, layout)
        self._weigh(DECODED, frames.row)
        self._keep(kind.table, table_of(decoded_schema(kind), columns | arrays, self.origin))

    def _keys(self, kind: RecordType, frames: Frames) -> tuple[Frames, Column]:
        cursor = Cursor.over(self.buffer, frames.key_start, frames.key_length)
        key: Column = key_reader(kind.name).read(cursor)
        cursor.require_exhausted(Reason.TRAILING_BYTES, "key")
        self.failures.add_journal(cursor, frames.row, kind.name)
        living = np.flatnonzero(~cursor.dead)
        if living.size < frames.row.size:
            frames, key = frames.take(living), take(key, living)
        if self.selection.is_everything:
            return frames, key
        broken = invalid_rows(key, struct_type(kind.key))
        self.failures.add(frames.row[broken], Reason.INVALID_UTF8, f"{kind.name}: key")
        readable = np.flatnonzero(~broken)
        frames, key = frames.take(readable), take(key, readable)
        wanted = self.selection.selects(key) if isinstance(key, Group) else ~broken
        self.decoded.left_out[_FILTERED] += int((~wanted).sum())
        self._weigh(_FILTERED, frames.row[~wanted])
        self._note_left_out(kind, frames.take(np.flatnonzero(~wanted & ~frames.tombstone)))
        chosen = np.flatnonzero(wanted)
        return frames.take(chosen), take(key, chosen)

    def _note_left_out(self, kind: RecordType, frames: Frames) -> None:
        """Note what records that a filter leaves out show of the release that wrote them."""
        fields = [each for each in field_evidence() if each.table == kind.table]
        is_evidence = any(each.table == kind.table for each in record_evidence())
        if not frames.row.size or not (fields or is_evidence):
            return
        if not fields and not kind.layouts:
            pairs = zip(frames.record_type.tolist(), frames.version.tolist(), strict=True)
            self.decoded.kinds_left_out |= {RecordKind(*pair, None) for pair in set(pairs)}
            return
        # What does not decode shows nothing.
        pieces, _ = read_values(kind, frames, self.buffer)
        if not pieces:
            return
        place, value = in_order(pieces)
        layout = _layouts(frames.row.size, pieces)[place]
        self.decoded.kinds_left_out |= set(_kinds(kind, frames.take(place), layout))
        if isinstance(value, Group):
            self.decoded.fields_left_out |= {
                each for each in fields if _is_set(value.columns[each.column], each.unset)
            }

    def _without_bad_text(
        self, kind: RecordType, rows: NDArray[np.int64], key: Column | None, value: Column
    ) -> NDArray[np.int64]:
        bad_value = text_failures(kind, value)
        bad_key = (
            np.zeros_like(bad_value) if key is None else invalid_rows(key, struct_type(kind.key))
        )
        self.failures.add(rows[bad_key], Reason.INVALID_UTF8, f"{kind.name}: key")
        self.failures.add(rows[bad_value & ~bad_key], Reason.INVALID_UTF8, f"{kind.name}: value")
        return np.flatnonzero(~(bad_key | bad_value))

    def _columns(
        self, kind: RecordType, frames: Frames, layout: NDArray[np.int64]
    ) -> dict[str, pa.Array]:
        version = frames.version.astype(np.int16)
        return surroundings(self.records, frames.row, self.origin) | {
            "record_type": pa.array(frames.record_type.astype(np.int16)),
            "value_version": pa.array(version, mask=frames.tombstone),
            "value_layout": labels(layout, list(kind.layouts)),
            "is_tombstone": pa.array(frames.tombstone),
        }


def _is_set(numbers: Column, unset: int) -> bool:
    if not isinstance(numbers, Fixed):
        raise TypeError(f"a {type(numbers).__name__} is no number to tell a release by")
    is_other = numbers.values != unset
    return bool(np.any(is_other if numbers.valid is None else is_other & numbers.valid))


def _kinds(kind: RecordType, frames: Frames, layout: NDArray[np.int64]) -> Counter[RecordKind]:
    found: Counter[RecordKind] = Counter()
    how = (frames.version + 1) << 8 | (layout + 1)
    numbers = distinct(frames.record_type)
    for number in numbers:
        here = frames.record_type == number if len(numbers) > 1 else slice(None)
        for code, count in counted(how[here]):
            version, index = (code >> 8) - 1, (code & 0xFF) - 1
            name = kind.layouts[index] if index >= 0 else None
            found[RecordKind(number, version, name)] += count
    return found


def _layouts(size: int, pieces: list[Piece]) -> NDArray[np.int64]:
    layout = np.full(size, -1, np.int64)
    for piece in (each for each in pieces if each.layout >= 0):
        layout[piece.place] = piece.layout
    return layout


def _struct_columns(kind: RecordType, key: Column | None, value: Column) -> dict[str, pa.Array]:
    schema = decoded_schema(kind)
    columns: dict[str, pa.Array] = {}
    if isinstance(key, Group):
        columns["key"] = struct_array(key, schema.field("key").type)
    if kind.value.fields and isinstance(value, Group):
        values = struct_array(value, schema.field("value").type)
        columns["value"] = without_secrets(kind, values)
    return columns


def _decode_control(
    records: RawRecords, rows: NDArray[np.int64], buffer: ByteBuffer, origin: Origin
) -> tuple[pa.RecordBatch, Failures]:
    """Decode control records into rows of ``control_markers``."""
    failures = Failures()
    key_length = records.key.length[rows]
    readable = key_length >= _KEY.itemsize
    failures.add(rows[key_length < 0], Reason.NULL_KEY, "control record")
    short = rows[~readable & (key_length >= 0)]
    failures.add(short, Reason.TRUNCATED, "control record: key")
    rows = rows[readable]
    number = buffer.gather(_KEY, records.key.start[rows])["type"].astype(np.int64)
    ends = np.isin(number, _TRANSACTION_ENDS)
    cut = ends & (records.value.length[rows] < _END.itemsize)
    failures.add(rows[cut], Reason.TRUNCATED, "control record: coordinatorEpoch")
    rows, number, ends = rows[~cut], number[~cut], ends[~cut]
    epoch = buffer.gather(_END, np.where(ends, records.value.start[rows], 0))["epoch"]
    known, index = np.unique(number, return_inverse=True)
    words = [_CONTROL_TYPES.get(each, str(each)) for each in known.tolist()]
    columns = surroundings(records, rows, origin) | {
        "control_type": labels(index, words),
        "coordinator_epoch": pa.array(epoch.astype(np.int32), mask=~ends),
    }
    return table_of(CONTROL_MARKERS, columns, origin), failures


def _undecoded_records(
    records: RawRecords, failures: Failures, buffer: ByteBuffer, origin: Origin
) -> pa.RecordBatch:
    """Rows of ``undecoded`` for failed records, in log order."""
    if not failures.count:
        return pa.RecordBatch.from_pylist([], schema=UNDECODED)
    rows = np.concatenate(failures.rows)
    number = np.repeat(np.arange(len(failures.rows)), [each.size for each in failures.rows])
    order = np.argsort(rows, kind="stable")
    rows, number = rows[order], number[order]
    detail = pa.array(failures.details, pa.string()).take(pa.array(number))
    value = binary_array(Binary(buffer, records.value.start[rows], records.value.length[rows]))
    if may_hold_secrets(origin.topic):
        detail = without_bytes(detail, pa.array(records.value.length[rows]))
        value = pa.nulls(rows.size, pa.binary())
    columns = surroundings(records, rows, origin) | {
        "key": binary_array(Binary(buffer, records.key.start[rows], records.key.length[rows])),
        "value": value,
        "reason": labels(number, failures.reasons),
        "detail": detail,
    }
    return table_of(UNDECODED, columns, origin)


def _undecoded_damages(damages: Sequence[Damage], origin: Origin) -> pa.RecordBatch:
    """Rows of ``undecoded`` for damaged batches and bytes between batches."""
    rows = len(damages)
    detail = pa.array([each.detail for each in damages], pa.string())
    value = pa.array([each.content for each in damages], pa.binary())
    if may_hold_secrets(origin.topic):
        detail = without_bytes(detail, pc.binary_length(value))
        value = pa.nulls(rows, pa.binary())
    columns = {
        "topic": label(origin.topic, rows),
        "partition": pa.array(np.full(rows, origin.partition, np.int32)),
        "offset": pa.nulls(rows, pa.int64()),
        "timestamp": pa.nulls(rows, UNDECODED.field("timestamp").type),
        "key": pa.nulls(rows, pa.binary()),
        "value": value,
        "reason": labels(np.arange(rows), [str(each.reason) for each in damages]),
        "detail": detail,
        "batch_offset": pa.array([each.offset for each in damages], pa.int64()),
        "batch_position": pa.array([each.position for each in damages], pa.int64()),
        "batch_bytes": pa.array([min(each.size, _INT32_MAX) for each in damages], pa.int32()),
        "copy": label(origin.copy, rows),
        "segment": label(origin.segment, rows),
    }
    return table_of(UNDECODED, columns, origin)
