"""Rows gathered by a loop, turned into the same Arrow columns that the decoder makes.

A row is a tuple. Its first values are the record's position and batch, then come the leaves of key
and value; a tombstone has None for each leaf of its value.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache
from itertools import accumulate, chain
from typing import Any

import pyarrow as pa

from analytics.decode.tables import Origin, decoded_schema, spark_schema
from schemas import all_record_types

# What fills a batch, about as many rows as the decoder's chunks have.
ROWS = 30_000

Row = tuple[Any, ...]
Emit = Callable[[str, pa.RecordBatch], None]

_SURROUNDINGS = (
    "offset",
    "timestamp",
    "leader_epoch",
    "producer_id",
    "producer_epoch",
    "is_transactional",
    "batch_offset",
    "batch_position",
    "record_bytes",
    "record_type",
    "value_version",
)


@cache
def schema_of(table: str) -> pa.Schema:
    """Return a decoded table's schema with plain strings."""
    kind = next(each for each in all_record_types().values() if each.table == table)
    return spark_schema(decoded_schema(kind))


class Rows:
    """Rows of one table until there are enough for a batch."""

    def __init__(self, table: str, origin: Origin, layout: str | None, emit: Emit) -> None:
        self.table = table
        self.origin = origin
        self.layout = layout
        self.emit = emit
        self.rows: list[Row] = []
        self.append = self.rows.append

    def flush(self) -> None:
        """Give out what was gathered."""
        if self.rows:
            self.emit(self.table, self._batch())
            self.rows.clear()

    def _batch(self) -> pa.RecordBatch:
        schema, count = schema_of(self.table), len(self.rows)
        columns: list[Sequence[Any]] = list(zip(*self.rows, strict=True))
        surrounding = dict(zip(_SURROUNDINGS, columns, strict=False))
        leaves = iter(columns[len(_SURROUNDINGS) :])
        version = surrounding["value_version"]
        tombstone = [each is None for each in version]
        arrays = []
        for field in schema:
            if field.name in surrounding:
                arrays.append(_array(surrounding[field.name], field.type))
            elif field.name in {"key", "value"}:
                parts = [_array(next(leaves), each.type) for each in field.type]
                mask = pa.array(tombstone) if field.name == "value" else None
                arrays.append(pa.StructArray.from_arrays(parts, fields=list(field.type), mask=mask))
            elif field.name == "is_tombstone":
                arrays.append(pa.array(tombstone))
            elif field.name == "value_layout":
                arrays.append(
                    pa.array(
                        [None if each is None else self.layout for each in version], pa.string()
                    )
                )
            else:
                arrays.append(self._constant(field, count))
        return pa.RecordBatch.from_arrays(arrays, schema=schema)

    def _constant(self, field: pa.Field, count: int) -> pa.Array:
        value = getattr(self.origin, field.name, None)
        return (
            pa.nulls(count, field.type)
            if value is None
            else pa.repeat(pa.scalar(value, field.type), count)
        )


def _array(values: Sequence[Any], type_: pa.DataType) -> pa.Array:
    if type_ == pa.timestamp("us", "UTC"):
        return pa.array(values, pa.int64()).view(type_)
    if pa.types.is_list(type_) and pa.types.is_struct(type_.value_type):
        return _structs(values, type_)
    return pa.array(values, type_)


def _structs(values: Sequence[Sequence[Any]], type_: pa.DataType) -> pa.Array:
    """Turn lists into a list column; an element is a dict, or a tuple of its leaves."""
    first = next((each[0] for each in values if each), None)
    if not isinstance(first, tuple):
        return pa.array(values, type_)
    offsets = pa.array([0, *accumulate(map(len, values))], pa.int32())
    leaves = zip(*chain.from_iterable(values), strict=True)
    fields = list(type_.value_type)
    parts = [_array(leaf, each.type) for leaf, each in zip(leaves, fields, strict=True)]
    return pa.ListArray.from_arrays(
        offsets, pa.StructArray.from_arrays(parts, fields=fields), type=type_
    )
