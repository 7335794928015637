"""Columns for fields that were not written.

Null where the version lacks the field, else Kafka's default (a tagged field that was left out).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from analytics.wire.columns import Binary, Column, Fixed, Group, Repeated
from analytics.wire.primitives import COLUMN_DTYPES
from schemas import embedded

if TYPE_CHECKING:
    from analytics.wire.cursor import ByteBuffer
    from schemas.model import Field, Struct


def absent(each: Field, buffer: ByteBuffer, size: int) -> Column:
    """Nulls for a field that the rows' version does not have."""
    if each.is_array:
        return Repeated(np.full(size, -1, np.int64), _absent_item(each, buffer, 0))
    return _absent_item(each, buffer, size)


def _absent_item(each: Field, buffer: ByteBuffer, size: int) -> Column:
    if each.type == "struct":
        return absent_struct(each.struct, buffer, size)
    if each.type in ("string", "bytes"):
        return Binary(buffer, np.zeros(size, np.int64), np.full(size, -1, np.int64))
    return Fixed(np.zeros(size, COLUMN_DTYPES[each.type]), np.zeros(size, np.bool_))


def absent_struct(struct: Struct, buffer: ByteBuffer, size: int) -> Group:
    """Null structs, with every column of the union of versions."""
    columns: dict[str, Column] = {}
    for each in struct.fields:
        columns[each.column] = absent(each, buffer, size)
        if each.embedded is not None:
            message = embedded(each.embedded.name).row
            columns[f"{each.column}_decoded"] = absent_struct(message, buffer, size)
    return Group(columns, size, np.zeros(size, np.bool_))


def default(each: Field, version: int, buffer: ByteBuffer) -> Column:
    """One row with the value Kafka takes for a tagged field that was not written."""
    column = absent(each, buffer, 1)
    if version in each.nullable and each.default is None:
        return column
    match column:
        case Repeated():
            return Repeated(np.zeros(1, np.int64), column.items)
        case Binary():
            if each.default:
                message = f"a default text is not supported: {each.name}"
                raise NotImplementedError(message)
            return Binary(buffer, np.zeros(1, np.int64), np.zeros(1, np.int64))
        case Fixed() if each.type != "uuid":
            return Fixed(np.array([each.default], column.values.dtype))
        case Fixed():  # the zero uuid
            return Fixed(column.values)
        case _:
            return column
