"""Columns between bytes and Arrow: values, text, and what stands for a field not written."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from analytics.wire.cursor import COLUMN_DTYPES
from schemas import embedded

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from analytics.wire.cursor import ByteBuffer
    from schemas.model import Field, Struct

    Index = NDArray[np.int64]
    Mask = NDArray[np.bool_]

# Spans of a buffer to Arrow strings and binaries, and uuids to Kafka's base64 text.

_ASCII = 0x80
# Of texts, at most one in so many has any bytes.
_SPARSE = 2
_UUID_BYTES = 16
_UUID_TEXT = 22
_ALPHABET = np.frombuffer(
    b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_", np.uint8
)


def binary_array(column: Binary) -> pa.Array:
    """Copy spans into an Arrow binary array."""
    length = column.length
    filled = length > 0
    is_dense = _SPARSE * np.count_nonzero(filled) > length.size
    if is_dense and int(length.min()) >= 0:
        return _gather(column.buffer.data, column.start, length)
    # What is empty or null lies nowhere: only the others are copied, none of them where all are.
    rows = np.flatnonzero(filled)
    content = _gather(column.buffer.data, column.start[rows], length[rows]).buffers()[2]
    bounds = np.zeros(length.size + 1, np.int32)
    np.cumsum(np.maximum(length, 0), out=bounds[1:])
    null = length < 0
    validity = pa.array(~null).buffers()[1] if null.any() else None
    buffers = [validity, pa.py_buffer(bounds), content or pa.py_buffer(b"")]
    return pa.Array.from_buffers(pa.binary(), length.size, buffers)


def _gather(data: NDArray[np.uint8], start: NDArray[Any], length: NDArray[Any]) -> pa.Array:
    """Copy non-null spans; spans that ascend without overlap are one native gather."""
    rows = start.size
    if not rows:
        return pa.array([], pa.binary())
    bounds = np.empty(2 * rows, np.int32)
    bounds[0::2] = start
    bounds[1::2] = start + length
    if (bounds[1:] < bounds[:-1]).any():
        order = np.lexsort((length, start))
        if (start[order][1:] < (start + length)[order][:-1]).any():
            return _copy_overlapping(data, start, length)
        place = np.empty(rows, np.int64)
        place[order] = np.arange(rows)
        return _gather(data, start[order], length[order]).take(pa.array(place))
    # The spans between ours are elements too: with ours at the even places, taking those copies
    # all the bytes in one pass of Arrow's own code.
    spans = pa.Array.from_buffers(
        pa.binary(), 2 * rows - 1, [None, pa.py_buffer(bounds), pa.py_buffer(data)]
    )
    return spans.take(pa.array(np.arange(0, 2 * rows, 2)))


def _copy_overlapping(
    data: NDArray[np.uint8], start: NDArray[Any], length: NDArray[Any]
) -> pa.Array:
    bounds = np.zeros(start.size + 1, np.int32)
    np.cumsum(length, out=bounds[1:])
    step = np.arange(int(bounds[-1])) - np.repeat(bounds[:-1], length)
    content = data[np.repeat(start, length) + step]
    return pa.Array.from_buffers(
        pa.binary(), start.size, [None, pa.py_buffer(bounds), pa.py_buffer(content)]
    )


def string_array(column: Binary) -> pa.Array:
    """Copy spans into an Arrow string array.

    Raises:
        pyarrow.ArrowInvalid: Some span is not UTF-8; ``invalid_text`` says which.
    """
    array = binary_array(column)
    validity, offsets, data = array.buffers()
    if _is_ascii(data):
        return pa.Array.from_buffers(
            pa.string(), len(array), [validity, offsets, data], array.null_count
        )
    return array.cast(pa.string())


def _is_ascii(data: pa.Buffer | None) -> bool:
    return data is None or not data.size or int(np.frombuffer(data, np.uint8).max()) < _ASCII


def invalid_text(column: Binary) -> NDArray[np.bool_]:
    """Which spans are not UTF-8."""
    array = binary_array(column)
    if _is_ascii(array.buffers()[2]):
        return np.zeros(column.size, np.bool_)
    return np.array([not _is_utf8(each) for each in array.to_pylist()], np.bool_)


def _is_utf8(content: bytes | None) -> bool:
    try:
        (content or b"").decode()
    except UnicodeDecodeError:
        return False
    return True


def uuid_array(column: Fixed) -> pa.Array:
    """Write uuids as Kafka does: URL-safe base64 of the 16 bytes, 22 characters, no padding."""
    rows = column.size
    padded = np.zeros((rows, 18), np.uint8)
    padded[:, :_UUID_BYTES] = column.values.view(np.uint8).reshape(rows, _UUID_BYTES)
    first, second, third = (padded[:, place::3].astype(np.uint16) for place in range(3))
    digits = np.stack(
        [first >> 2, (first << 4 | second >> 4) & 63, (second << 2 | third >> 6) & 63, third & 63],
        axis=2,
    )
    text = np.ascontiguousarray(_ALPHABET[digits.reshape(rows, 24)[:, :_UUID_TEXT]])
    bounds = np.arange(rows + 1, dtype=np.int32) * _UUID_TEXT
    validity = None if column.valid is None else pa.array(column.valid).buffers()[1]
    return pa.Array.from_buffers(
        pa.string(), rows, [validity, pa.py_buffer(bounds), pa.py_buffer(text)]
    )


# Columns between bytes and Arrow: values are gathered, text is still spans of the buffer.
#
# Every column can be concatenated with others of its kind and taken from by index, so arrays read
# in lock-step and versions decoded apart are put in order before Arrow copies a single string.

# Fields to Arrow types, and columns to Arrow arrays of those types.

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


# Values this close together are counted instead of sorted.
_COUNTABLE = 1 << 12


@dataclass(frozen=True)
class Fixed:
    """Numbers, booleans and uuids (as 16 raw bytes); ``valid`` is None when nothing is null."""

    values: NDArray[Any]
    valid: Mask | None = None

    @property
    def size(self) -> int:
        """Number of rows."""
        return self.values.size


@dataclass(frozen=True)
class Binary:
    """Strings and bytes as spans of the buffer; length -1 is null."""

    buffer: ByteBuffer
    start: NDArray[np.int64]
    length: NDArray[np.int64]

    @property
    def size(self) -> int:
        """Number of rows."""
        return self.start.size


@dataclass(frozen=True)
class Repeated:
    """Arrays: elements per row (-1 is null) and all elements, row after row."""

    count: NDArray[np.int64]
    items: Column

    @property
    def size(self) -> int:
        """Number of rows."""
        return self.count.size


@dataclass(frozen=True)
class Group:
    """Structs: named columns of equal size."""

    columns: dict[str, Column]
    size: int
    valid: Mask | None = None


Column = Fixed | Binary | Repeated | Group


def _take_mask(valid: Mask | None, index: Index) -> Mask | None:
    return None if valid is None else valid[index]


def take(column: Column, index: Index) -> Column:
    """Pick rows by index, in the order of the index."""
    match column:
        case Fixed():
            return Fixed(column.values[index], _take_mask(column.valid, index))
        case Binary():
            return Binary(column.buffer, column.start[index], column.length[index])
        case Repeated():
            return _take_repeated(column, index)
        case Group():
            columns = {name: take(child, index) for name, child in column.columns.items()}
            return Group(columns, index.size, _take_mask(column.valid, index))


def starts_of(count: NDArray[np.int64]) -> NDArray[np.int64]:
    """Index of each row's first element, given elements per row (null counts as none)."""
    full = np.maximum(count, 0)
    return np.cumsum(full) - full


def elements_of(first: NDArray[np.int64], count: NDArray[np.int64]) -> Index:
    """Indices first, first+1, ... of each row, row after row; ``count`` is not negative."""
    total = int(count.sum())
    step = np.arange(total, dtype=np.int64) - np.repeat(np.cumsum(count) - count, count)
    return np.repeat(first, count) + step


def _take_repeated(column: Repeated, index: Index) -> Repeated:
    count = column.count[index]
    elements = elements_of(starts_of(column.count)[index], np.maximum(count, 0))
    return Repeated(count, take(column.items, elements))


def _concat_masks(parts: Sequence[tuple[Mask | None, int]]) -> Mask | None:
    if all(mask is None for mask, _ in parts):
        return None
    return np.concatenate(
        [np.ones(size, np.bool_) if mask is None else mask for mask, size in parts]
    )


def concat(columns: Sequence[Column]) -> Column:
    """Join columns of one kind, row after row."""
    first = columns[0]
    if len(columns) == 1:
        return first
    match first:
        case Fixed():
            fixed = [part for part in columns if isinstance(part, Fixed)]
            valid = _concat_masks([(part.valid, part.size) for part in fixed])
            return Fixed(np.concatenate([part.values for part in fixed]), valid)
        case Binary():
            spans = [part for part in columns if isinstance(part, Binary)]
            start = np.concatenate([part.start for part in spans])
            return Binary(first.buffer, start, np.concatenate([part.length for part in spans]))
        case Repeated():
            lists = [part for part in columns if isinstance(part, Repeated)]
            items = concat([part.items for part in lists])
            return Repeated(np.concatenate([part.count for part in lists]), items)
        case Group():
            groups = [part for part in columns if isinstance(part, Group)]
            children = {
                name: concat([part.columns[name] for part in groups]) for name in first.columns
            }
            valid = _concat_masks([(part.valid, part.size) for part in groups])
            return Group(children, sum(part.size for part in groups), valid)


def distinct(values: NDArray[Any]) -> list[int]:
    """Return the distinct values in order."""
    return [value for value, _ in counted(values)]


def counted(values: NDArray[Any]) -> list[tuple[int, int]]:
    """Return the distinct values in order, and how often each is there.

    A chunk often has just one, which is found at once.
    """
    if not values.size:
        return []
    low, high = int(values.min()), int(values.max())
    if low == high:
        return [(low, values.size)]
    if high - low < _COUNTABLE:
        counts = np.bincount(np.subtract(values, low, dtype=np.int64))
        found = np.flatnonzero(counts)
        return list(zip((found + low).tolist(), counts[found].tolist(), strict=True))
    found, counts = np.unique(values, return_counts=True)
    return list(zip(found.tolist(), counts.tolist(), strict=True))


def scatter(size: int, default: Column, parts: Sequence[tuple[Index, Column]]) -> Column:
    """Spread parts over ``size`` rows; rows that no part names get the one row of ``default``.

    Where parts name a row twice the later one counts.
    """
    source = np.zeros(size, np.int64)
    filled = 1
    for rows, part in parts:
        source[rows] = filled + np.arange(rows.size)
        filled += part.size
    return take(concat([default, *(part for _, part in parts)]), source)


# Columns for fields that were not written.
#
# Null where the version lacks the field, else Kafka's default (a tagged field that was left out).


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
