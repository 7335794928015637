"""The Arrow schemas of what is decoded, and the columns around key and value.

Values of one record type, over all the versions and layouts that a chunk holds.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from analytics.decode.frames import Failures
from analytics.time_columns import TIMESTAMP, times_of
from analytics.wire.columns import (
    Column,
    absent_struct,
    concat,
    distinct,
    invalid_rows,
    struct_type,
    take,
)
from analytics.wire.cursor import Cursor, Reason, UnknownTags
from analytics.wire.decoder import value_reader
from schemas import all_record_types, record_types
from schemas.names import WITHHELD, sensitive_settings

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from analytics.decode.frames import Frames
    from analytics.dump.records.raw_records import RawRecords
    from analytics.wire.cursor import ByteBuffer
    from schemas.model import RecordType


# Secrets of the metadata log: values of sensitive settings, and bytes that may hold some.
#
# A ``ConfigRecord`` has passwords as they were given; Kafka declares such settings as of the type
# PASSWORD (``ConfigDef.Type``). They are withheld before anything is written. Nobody knows what
# is in records that cannot be read: their bytes are withheld, too.


def without_secrets(kind: RecordType, value: pa.StructArray) -> pa.StructArray:
    """Return the values of a record type without those of sensitive settings.

    Args:
        kind: The record type; its fields say by which other field they are withheld.
        value: Its column `value`.
    """
    withheld = [each for each in kind.value.fields if each.withheld_by is not None]
    if not withheld:
        return value
    columns = {field.name: value.field(field.name) for field in value.type}
    names = {each.name: each.column for each in kind.value.fields}
    for each in withheld:
        setting = columns[names[each.withheld_by or ""]]
        is_sensitive = pc.match_substring_regex(setting, sensitive_settings())
        is_secret = pc.and_(
            pc.fill_null(is_sensitive, fill_value=False), columns[each.column].is_valid()
        )
        columns[each.column] = pc.if_else(is_secret, WITHHELD, columns[each.column])
    return pa.StructArray.from_arrays(
        list(columns.values()), fields=list(value.type), mask=value.is_null()
    )


@cache
def may_hold_secrets(topic: str) -> bool:
    """Return whether records of a topic may hold secrets: their bytes are not kept."""
    return any(
        kind.read == "secret" or any(each.withheld_by for each in kind.value.fields)
        for kind in record_types(topic).values()
    )


def without_bytes(detail: pa.Array, lengths: pa.Array) -> pa.Array:
    """Return details of undecoded rows that say how many bytes of each were withheld.

    Args:
        detail: In words; may be null.
        lengths: Of the value in bytes; negative or null where there is none.
    """
    counted = pc.binary_join_element_wise(
        pc.cast(lengths, pa.string()), " bytes withheld: they may hold secrets", ""
    )
    # Joined with nulls skipped, rows without any word would be dropped (Arrow 26).
    words = pc.coalesce(pc.binary_join_element_wise(detail, counted, "; "), counted)
    return pc.if_else(pc.fill_null(pc.greater(lengths, 0), fill_value=False), words, detail)


NO_LAYOUT = -1


@dataclass(frozen=True)
class Piece:
    """Values that were read alike: their places in the frames, and their columns."""

    place: NDArray[np.int64]
    column: Column
    layout: int
    unknown_tags: list[UnknownTags]


def read_values(
    kind: RecordType, frames: Frames, buffer: ByteBuffer
) -> tuple[list[Piece], Failures]:
    """Read the values of frames of one record type; tombstones are null structs."""
    failures = Failures()
    deleted = np.flatnonzero(frames.tombstone)
    if deleted.size and (piece := _read_at_once(kind, frames, buffer)) is not None:
        return [piece], failures
    pieces: list[Piece] = []
    if deleted.size:
        nothing = absent_struct(kind.value, buffer, deleted.size)
        pieces.append(Piece(deleted, nothing, NO_LAYOUT, []))
    living = np.flatnonzero(~frames.tombstone)
    versions = frames.version[living]
    present = distinct(versions)
    for version in present:
        place = living[versions == version] if len(present) > 1 else living
        if version in kind.versions:
            pieces += _read_version(kind, version, frames, place, buffer, failures)
        else:
            detail = f"{kind.name}: version {version}"
            failures.add(frames.row[place], Reason.UNSUPPORTED_VERSION, detail)
    return pieces, failures


def _read_at_once(kind: RecordType, frames: Frames, buffer: ByteBuffer) -> Piece | None:
    """Read values of one version and the tombstones among them; None where they are not all that.

    Apart they would have to be put in order again, all for the few tombstones there are.
    """
    version = int(frames.version.max())
    other = (frames.version != version) & ~frames.tombstone
    if version not in kind.versions or kind.layouts or other.any():
        return None
    cursor = Cursor.over(buffer, frames.value_start, frames.value_length)
    reader = value_reader(kind.name, version, None)
    column = reader.read_among_nulls(cursor, frames.tombstone)
    if column is None or (cursor.position != cursor.end).any():
        return None
    return Piece(np.arange(frames.row.size), column, NO_LAYOUT, [])


def _read_version(
    kind: RecordType,
    version: int,
    frames: Frames,
    place: NDArray[np.int64],
    buffer: ByteBuffer,
    failures: Failures,
) -> list[Piece]:
    """Read one version; where it has had several layouts, the first that fits exactly counts."""
    pieces: list[Piece] = []
    first_failure: tuple[Cursor, NDArray[np.int64]] | None = None
    for number, layout in enumerate(kind.layouts or (None,)):
        cursor = Cursor.over(buffer, frames.value_start[place], frames.value_length[place])
        column: Column = value_reader(kind.name, version, layout).read(cursor)
        cursor.require_exhausted(Reason.TRAILING_BYTES, "")
        if cursor.sound:
            living = np.arange(place.size)
        else:
            living = np.flatnonzero(~cursor.dead)
            column = take(column, living)
        if living.size:
            known = number if kind.layouts else NO_LAYOUT
            tags = _tags_by_place(cursor, place, living)
            pieces.append(Piece(place[living], column, known, tags))
        if cursor.sound:
            return pieces
        if first_failure is None:
            first_failure = (cursor, frames.row[place])
            tried = place
        place = place[cursor.dead]
    if first_failure is not None:
        cursor, rows = first_failure
        failed = np.where(np.isin(tried, place), rows, -1)
        failures.add_journal(cursor, failed, f"{kind.name} version {version}")
    return pieces


def _tags_by_place(
    cursor: Cursor, place: NDArray[np.int64], living: NDArray[np.int64]
) -> list[UnknownTags]:
    """Unknown tags of the living rows, by their place in the frames."""
    alive = np.zeros(place.size, np.bool_)
    alive[living] = True
    placed = []
    for tags in cursor.journal.unknown_tags:
        kept = alive[tags.row]
        if kept.any():
            rows = place[tags.row[kept]]
            placed.append(
                UnknownTags(rows, tags.path, tags.tag[kept], tags.start[kept], tags.length[kept])
            )
    return placed


def in_order(pieces: list[Piece]) -> tuple[NDArray[np.int64], Column]:
    """Join pieces in the order of their places."""
    place = np.concatenate([piece.place for piece in pieces])
    column = concat([piece.column for piece in pieces])
    if (place[1:] > place[:-1]).all():
        return place, column
    source = np.full(int(place.max()) + 1, -1)
    source[place] = np.arange(place.size)
    ordered = np.flatnonzero(source >= 0)
    return ordered, take(column, source[ordered])


def text_failures(kind: RecordType, column: Column) -> NDArray[np.bool_]:
    """Rows of a value column with a string that is not UTF-8."""
    return invalid_rows(column, struct_type(kind.value))


UNKNOWN_TAGS_TYPE = pa.list_(
    pa.field(
        "element",
        pa.struct([("path", pa.string()), ("tag", pa.int32()), ("data", pa.binary())]),
    )
)


def unknown_tags_array(
    pieces: list[Piece], place: NDArray[np.int64], buffer: ByteBuffer
) -> pa.Array:
    """Tagged fields newer than the schema, per record; null where there is none."""
    if not any(piece.unknown_tags for piece in pieces):
        return pa.nulls(place.size, UNKNOWN_TAGS_TYPE)
    found: dict[int, list[dict[str, object]]] = {}
    for tags in (tags for piece in pieces for tags in piece.unknown_tags):
        for row, tag, start, length in zip(
            tags.row.tolist(),
            tags.tag.tolist(),
            tags.start.tolist(),
            tags.length.tolist(),
            strict=True,
        ):
            data = buffer.data[start : start + length].tobytes()
            found.setdefault(row, []).append({"path": tags.path, "tag": tag, "data": data})
    return pa.array([found.get(row) for row in place.tolist()], UNKNOWN_TAGS_TYPE)


# Repeating text is a dictionary in memory; Parquet and Spark read it back as plain strings.
LABEL = pa.dictionary(pa.int32(), pa.string())

_POSITION = [
    ("topic", LABEL),
    ("partition", pa.int32()),
    ("offset", pa.int64()),
    ("timestamp", TIMESTAMP),
]
_BATCH = [
    ("leader_epoch", pa.int32()),
    ("producer_id", pa.int64()),
    ("producer_epoch", pa.int16()),
    ("is_transactional", pa.bool_()),
]
_TYPE = [
    ("record_type", pa.int16()),
    ("value_version", pa.int16()),
    ("value_layout", LABEL),
    ("is_tombstone", pa.bool_()),
]
_SOURCE = [
    ("batch_offset", pa.int64()),
    ("batch_position", pa.int64()),
    ("record_bytes", pa.int32()),
    ("copy", LABEL),
    ("segment", LABEL),
]

# What rows of dumps, unlike archived ones, always have.
_OF_EVERY_ROW = frozenset({"topic", "partition", "copy", "segment"})
_OF_EVERY_RECORD = _OF_EVERY_ROW | {
    *("offset", "record_bytes", "record_type", "is_tombstone"),
    *("batch_offset", "batch_position", "producer_id", "producer_epoch", "is_transactional"),
}

CONTROL_MARKERS = pa.schema(
    [
        *_POSITION,
        *_BATCH,
        ("control_type", LABEL),
        ("coordinator_epoch", pa.int32()),
        *_SOURCE,
    ]
)
UNDECODED = pa.schema(
    [
        *_POSITION,
        ("key", pa.binary()),
        ("value", pa.binary()),
        ("reason", LABEL),
        ("detail", pa.string()),
        ("batch_offset", pa.int64()),
        ("batch_position", pa.int64()),
        ("batch_bytes", pa.int32()),
        ("copy", LABEL),
        ("segment", LABEL),
    ]
)


@cache
def decoded_schema(kind: RecordType) -> pa.Schema:
    """Arrow schema of a record type's table; a struct without fields has no column."""
    structs = []
    if kind.key.fields:
        # A key has one version, of which all fields are there.
        key = [pa.field(each.name, each.type, nullable=False) for each in struct_type(kind.key)]
        structs.append(pa.field("key", pa.struct(key), nullable=False))
    if kind.value.fields:
        structs.append(pa.field("value", struct_type(kind.value)))
    tags = ("unknown_tags", UNKNOWN_TAGS_TYPE)
    return pa.schema([*_POSITION, *_BATCH, *_TYPE, *structs, tags, *_SOURCE])


@cache
def schema_of_dump(schema: pa.Schema) -> pa.Schema:
    """Return the same schema for rows of dumps: what none of them lacks is not nullable."""
    always = _OF_EVERY_RECORD if "record_bytes" in schema.names else _OF_EVERY_ROW
    return pa.schema(
        [each.with_nullable(each.nullable and each.name not in always) for each in schema]
    )


def spark_schema(schema: pa.Schema) -> pa.Schema:
    """Return the same schema with plain strings, as Spark's Python data sources demand."""
    return pa.schema(
        [each.with_type(pa.string()) if each.type == LABEL else each for each in schema]
    )


def table_schema(table: str) -> pa.Schema:
    """Arrow schema of a decoded table, with plain strings.

    Raises:
        ValueError: There is no such table.
    """
    other = {"control_markers": CONTROL_MARKERS, "undecoded": UNDECODED}
    if table in other:
        return spark_schema(other[table])
    for kind in all_record_types().values():
        if kind.table == table and kind.read == "decode":
            return spark_schema(decoded_schema(kind))
    message = f'there is no decoded table "{table}"'
    raise ValueError(message)


@dataclass(frozen=True)
class Origin:
    """Where raw records come from; archived rows have neither copy nor segment nor batches."""

    topic: str
    partition: int
    copy: str | None = None
    segment: str | None = None

    @property
    def is_archived(self) -> bool:
        """Whether the records are archived rows, which lack all that a batch would say."""
        return self.segment is None


def label(value: str | None, rows: int) -> pa.DictionaryArray:
    """One text for all rows, or null."""
    if value is None:
        return pa.nulls(rows, LABEL)
    return pa.DictionaryArray.from_arrays(pa.array(np.zeros(rows, np.int32)), [value])


def labels(index: NDArray[np.int64], words: list[str]) -> pa.DictionaryArray:
    """Pick a word for each row; a negative index is null."""
    if not words:
        return pa.nulls(index.size, LABEL)
    indices = pa.array(index.astype(np.int32), mask=index < 0)
    return pa.DictionaryArray.from_arrays(indices, pa.array(words, pa.string()))


def surroundings(
    records: RawRecords, row: NDArray[np.int64], origin: Origin
) -> dict[str, pa.Array]:
    """Position, batch and source columns of raw records."""
    rows = row.size
    columns: dict[str, pa.Array] = {
        "topic": label(origin.topic, rows),
        "partition": pa.array(np.full(rows, origin.partition, np.int32)),
        "offset": pa.array(records.offset[row]),
        "timestamp": times_of(records.timestamp[row]),
        "copy": label(origin.copy, rows),
        "segment": label(origin.segment, rows),
    }
    if origin.is_archived:
        return columns | {
            name: pa.nulls(rows, type_) for name, type_ in (*_BATCH, *_SOURCE[:3], _BATCH_BYTES)
        }
    batch = records.batch[row]
    of = records.batches
    epoch = of.leader_epoch[batch]
    return columns | {
        "leader_epoch": pa.array(epoch, pa.int32(), mask=epoch < 0),
        "producer_id": pa.array(of.producer_id[batch]),
        "producer_epoch": pa.array(of.producer_epoch[batch]),
        "is_transactional": pa.array(of.is_transactional[batch]),
        "batch_offset": pa.array(of.base_offset[batch]),
        "batch_position": pa.array(of.position[batch]),
        "batch_bytes": pa.array(of.size[batch].astype(np.int32)),
        "record_bytes": pa.array(records.record_bytes[row]),
    }


_BATCH_BYTES = ("batch_bytes", pa.int32())


def table_of(schema: pa.Schema, columns: dict[str, pa.Array], origin: Origin) -> pa.RecordBatch:
    """Arrange columns as the schema has them."""
    if not origin.is_archived:
        schema = schema_of_dump(schema)
    return pa.RecordBatch.from_arrays([columns[name] for name in schema.names], schema=schema)
