"""The Arrow schemas of what is decoded, and the columns around key and value."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from analytics.decode.records.values import UNKNOWN_TAGS_TYPE
from analytics.time_columns import TIMESTAMP, times_of
from analytics.wire.columns import struct_type
from schemas import all_record_types

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from analytics.dump.records.raw_records import RawRecords
    from schemas.model import RecordType

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
