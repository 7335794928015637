"""Fields to Arrow types, and columns to Arrow arrays of those types."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from analytics.wire.columns import Binary, Column, Fixed, Group, Repeated, starts_of
from analytics.wire.text import binary_array, invalid_text, string_array, uuid_array
from schemas import embedded

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from schemas.model import Field, Struct

_ARROW_TYPES = {
    "bool": pa.bool_(),
    "int8": pa.int8(),
    "int16": pa.int16(),
    "uint16": pa.int32(),
    "uint32": pa.int64(),
    "int32": pa.int32(),
    "int64": pa.int64(),
    "string": pa.string(),
    "bytes": pa.binary(),
    "uuid": pa.string(),
}


def struct_type(struct: Struct) -> pa.StructType:
    """Arrow type of the union of a struct's versions, embedded messages beside their bytes."""
    fields = []
    for each in struct.fields:
        fields.append(pa.field(each.column, field_type(each)))
        if each.embedded is not None:
            message = struct_type(embedded(each.embedded.name).row)
            fields.append(pa.field(f"{each.column}_decoded", message))
    return pa.struct(fields)


def field_type(each: Field) -> pa.DataType:
    """Arrow type of a field's column."""
    item = struct_type(each.struct) if each.type == "struct" else _ARROW_TYPES[each.type]
    return pa.list_(pa.field("element", item)) if each.is_array else item


def to_array(column: Column, type_: pa.DataType) -> pa.Array:
    """Copy a column into an Arrow array of the type that ``field_type`` names.

    Raises:
        pyarrow.ArrowInvalid: A string is not UTF-8; ``invalid_rows`` says in which rows.
    """
    match column:
        case Fixed():
            return _fixed(column, type_)
        case Binary():
            return string_array(column) if type_ == pa.string() else binary_array(column)
        case Repeated():
            return _list(column, type_)
        case Group():
            return struct_array(column, type_)


def _fixed(column: Fixed, type_: pa.DataType) -> pa.Array:
    if column.valid is not None and not column.valid.any():
        return pa.nulls(column.size, type_)
    if column.values.dtype.kind == "V":
        return uuid_array(column)
    mask = None if column.valid is None else ~column.valid
    return pa.array(column.values, type_, mask=mask)


def _list(column: Repeated, type_: pa.DataType) -> pa.Array:
    items = to_array(column.items, type_.value_type)
    bounds = np.zeros(column.size + 1, np.int32)
    np.cumsum(np.maximum(column.count, 0), out=bounds[1:])
    null = column.count < 0
    validity = pa.array(~null).buffers()[1] if null.any() else None
    return pa.Array.from_buffers(
        type_, column.size, [validity, pa.py_buffer(bounds)], children=[items]
    )


def struct_array(column: Group, type_: pa.DataType) -> pa.StructArray:
    """Copy a group of columns into an Arrow struct array."""
    children = [to_array(column.columns[each.name], each.type) for each in type_]
    mask = None if column.valid is None or column.valid.all() else pa.array(~column.valid)
    return pa.StructArray.from_arrays(children, fields=list(type_), mask=mask)


def invalid_rows(column: Column, type_: pa.DataType) -> NDArray[np.bool_]:
    """Rows that hold, at any depth, a string that is not UTF-8."""
    match column:
        case Binary() if type_ == pa.string():
            return invalid_text(column)
        case Repeated():
            bad = np.append(invalid_rows(column.items, type_.value_type), False).astype(np.int64)
            before = np.append(0, np.cumsum(bad))
            first = starts_of(column.count)
            return before[first + np.maximum(column.count, 0)] > before[first]
        case Group():
            rows = np.zeros(column.size, np.bool_)
            for each in type_:
                rows |= invalid_rows(column.columns[each.name], each.type)
            return rows
        case _:
            return np.zeros(column.size, np.bool_)
