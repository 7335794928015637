"""The walk over numbers, ids and texts that follow each other in every row, all at one visit.

Read column by column, each field is a visit to every row. The walk reads what is sound: at the
first row that is not it gives up, and the readers of single fields find out which are not and why.

Numbers are unsigned throughout, so that none is taken for a place counted from the end. Whoever
makes columns of them gives them their signs.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Final, Self

import numpy as np

from analytics.wire.columns import Binary, Column, Fixed
from analytics.wire.compiled import BYTES, compiled
from analytics.wire.cursor import COLUMN_DTYPES, WIRE_DTYPES
from analytics.wire.fields import FixedReader, PrefixedReader, TextContent

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from numpy.typing import NDArray

    from analytics.wire.columns import Mask
    from analytics.wire.compiled import Bytes
    from analytics.wire.cursor import Cursor
    from analytics.wire.fields import Reader
    from analytics.wire.structs import TagSection

KIND, WIDTH = range(2)
"""What `walk_fields` is told of each field."""
NUMBER, PLACE, NO_TAGS, TEXT, NULLABLE_TEXT = (np.uint64(kind) for kind in range(5))
"""What a field is: a number; bytes of which only the place is told; a section of tagged fields,
empty; a text behind its length; one that may be null."""
NULL: Final = np.uint64(2**64 - 1)
"""Length of a text that is null, end of a row that is."""
COMPACT: Final = np.uint64(0)
"""Width of a length that is an unsigned varint, one more than what it stands for."""

_UUID: Final = WIRE_DTYPES["uuid"]
# Numba takes an unsigned number and a signed one for fractions.
_0, _1, _2, _4, _7, _8, _16, _32 = (np.uint64(each) for each in (0, 1, 2, 4, 7, 8, 16, 32))
_MORE: Final = np.uint64(0x80)
_LOW_BITS: Final = np.uint64(0x7F)
_VARINT_BITS: Final = np.uint64(28)
_INT32_MAX: Final = np.uint64(2**31 - 1)


def read_two(data: Bytes, at: np.uint64) -> np.uint64:
    """Read two bytes, big-endian."""
    return np.uint64(data[at]) << _8 | np.uint64(data[at + _1])


def read_number(data: Bytes, at: np.uint64, width: np.uint64) -> np.uint64:
    """Read a big-endian number of 1, 2, 4 or 8 bytes."""
    if width == _1:
        return np.uint64(data[at])
    value = read_two(data, at)
    if width > _2:
        value = value << _16 | read_two(data, at + _2)
    if width > _4:
        half = read_two(data, at + _4) << _16 | read_two(data, at + _4 + _2)
        value = value << _32 | half
    return value


def read_compact(data: Bytes, at: np.uint64, stop: np.uint64) -> tuple[np.uint64, np.uint64]:
    """Read a compact length and where it ends; a place beyond ``stop`` where it is none."""
    value, shift = _0, _0
    while at < stop and shift <= _VARINT_BITS:
        byte = np.uint64(data[at])
        at += _1
        value |= (byte & _LOW_BITS) << shift
        if byte < _MORE:
            length = value - _1 if value > _0 else NULL
            return length, at if value <= _INT32_MAX else stop + _1
        shift += _7
    return _0, stop + _1


def read_length(
    data: Bytes, at: np.uint64, stop: np.uint64, width: np.uint64
) -> tuple[np.uint64, np.uint64]:
    """Read the length of a text and where it ends, for which there is room if it has a width."""
    if width == COMPACT:
        return read_compact(data, at, stop)
    length = read_number(data, at, width)
    # The first bit is the sign.
    return NULL if length >> (width * _8 - _1) else length, at + width


def read_row(
    data: Bytes,
    fields: NDArray[np.uint64],
    at: np.uint64,
    stop: np.uint64,
    values: NDArray[np.uint64],
    row: int,
) -> np.uint64:
    """Read the fields of one row; return where they end, beyond ``stop`` where one is not sound."""
    column = 0
    for field in range(len(fields)):
        kind, width = fields[field, KIND], fields[field, WIDTH]
        if at + width > stop:
            return stop + _1
        if kind >= TEXT:
            length, at = read_length(data, at, stop, width)
            if length == NULL and kind == TEXT:
                return stop + _1
            values[column, row], values[column + 1, row] = at, length
            column += 2
            at += _0 if length == NULL else length
            continue
        value = at if kind == PLACE else read_number(data, at, width)
        if kind == NO_TAGS:
            if value != _0:
                return stop + _1
        else:
            values[column, row] = value
            column += 1
        at += width
    return at


def skip_row(
    fields: NDArray[np.uint64], at: np.uint64, values: NDArray[np.uint64], row: int
) -> None:
    """Give a row of nulls zeros, and empty texts where the row before it ends."""
    column = 0
    for field in range(len(fields)):
        kind = fields[field, KIND]
        if kind >= TEXT:
            values[column, row], values[column + 1, row] = at, _0
            column += 2
        elif kind != NO_TAGS:
            values[column, row] = _0
            column += 1


@compiled(
    f"int64({BYTES}, uint64[:, ::1], uint64[::1], uint64[::1], uint64[:, ::1], uint64[::1])",
    read_two,
    read_number,
    read_compact,
    read_length,
    read_row,
    skip_row,
)
def walk_fields(
    data: Bytes,
    fields: NDArray[np.uint64],
    starts: NDArray[np.uint64],
    ends: NDArray[np.uint64],
    values: NDArray[np.uint64],
    after: NDArray[np.uint64],
) -> int:
    """Read the fields of every row.

    Args:
        data: The buffer.
        fields: Of each its kind and its width: of the number, the bytes, or the text's length.
        starts: Where the first field of each row begins.
        ends: Where each row ends; `NULL` for a row of nulls.
        values: Filled: a column for each field, for a text two: its place and its length.
        after: Filled: where the last field of each row ends.

    Returns:
        The number of rows read; fewer than there are: the next one is not sound.
    """
    before = _0
    for row in range(starts.size):
        stop = ends[row]
        if stop == NULL:
            skip_row(fields, before, values, row)
            after[row] = starts[row]
            continue
        before = read_row(data, fields, starts[row], stop, values, row)
        if before > stop:
            return row
        after[row] = before
    return int(starts.size)


@dataclass(frozen=True)
class FieldWalk:
    """Reads leading fields of a struct in one walk.

    ``fields`` are those that have a column; ``ends_with_no_tags`` says that an empty section of
    tagged fields follows them, or the walk fails.
    """

    fields: tuple[tuple[str, FixedReader | TextContent], ...]
    ends_with_no_tags: bool

    @classmethod
    def over(cls, inline: Sequence[tuple[str, Reader]], tags: Sequence[TagSection]) -> Self:
        """Walk over the first of a struct's fields, and its tags where none of them is known."""
        fields: list[tuple[str, FixedReader | TextContent]] = []
        for name, reader in inline:
            part = reader.content if isinstance(reader, PrefixedReader) else reader
            if not isinstance(part, (FixedReader, TextContent)):
                break
            fields.append((name, part))
        whole = len(fields) == len(inline)
        return cls(tuple(fields), whole and any(not each.fields for each in tags))

    def read(self, cursor: Cursor, null: Mask | None = None) -> dict[str, Column] | None:
        """Read the fields of every row and move every position past them.

        Rows that are ``null`` have no bytes, and get harmless values. None, and nothing is moved,
        where there is too little to read for a walk or some row is not sound.
        """
        if not cursor.sound or not walk_fields.pays(cursor.size * len(self.fields)):
            return None
        found = np.empty((sum(map(_width_found, self._readers)), cursor.size), np.uint64)
        after = np.empty(cursor.size, np.uint64)
        ends = _unsigned(cursor.end)
        if null is not None:
            ends = np.where(null, NULL, ends)
        starts = _unsigned(cursor.position)
        read = walk_fields.compiled(
            cursor.buffer.data, self._field_codes, starts, ends, found, after
        )
        if read < cursor.size:
            return None
        cursor.position = after.view(np.int64)
        return self._columns(cursor, found, null)

    def _columns(
        self, cursor: Cursor, values: NDArray[np.uint64], null: Mask | None
    ) -> dict[str, Column]:
        columns: dict[str, Column] = {}
        place = 0
        for name, reader in self.fields:
            if isinstance(reader, TextContent):
                start, length = values[place].view(np.int64), values[place + 1].view(np.int64)
                columns[name] = reader.remembered(cursor, Binary(cursor.buffer, start, length))
            else:
                columns[name] = _fixed(reader, cursor, values[place], null)
            place += _width_found(reader)
        return columns

    @property
    def _readers(self) -> Iterator[FixedReader | TextContent]:
        return (reader for _, reader in self.fields)

    @cached_property
    def _field_codes(self) -> NDArray[np.uint64]:
        told = [_field_code(reader) for reader in self._readers]
        return np.array([*told, *([(NO_TAGS, 1)] if self.ends_with_no_tags else [])], np.uint64)


def _field_code(reader: FixedReader | TextContent) -> tuple[np.uint64, int]:
    """What `walk_fields` is told of a field."""
    if isinstance(reader, TextContent):
        width = int(COMPACT) if reader.prefix is None else reader.prefix.itemsize
        return NULLABLE_TEXT if reader.nullable else TEXT, width
    wire = WIRE_DTYPES[reader.wire_type]
    return PLACE if wire == _UUID else NUMBER, wire.itemsize


def _width_found(reader: FixedReader | TextContent) -> int:
    return 2 if isinstance(reader, TextContent) else 1


def _fixed(
    reader: FixedReader, cursor: Cursor, places: NDArray[np.uint64], null: Mask | None
) -> Fixed:
    wire = WIRE_DTYPES[reader.wire_type]
    if wire == _UUID:
        values = cursor.buffer.gather(wire, places.view(np.int64))
        return Fixed(values, None if null is None else ~null)
    if wire.kind == "b":
        return Fixed(places != 0)
    values = places.astype(wire.newbyteorder("="))
    return Fixed(values.astype(COLUMN_DTYPES[reader.column_type], copy=False))


def _unsigned(places: NDArray[np.int64]) -> NDArray[np.uint64]:
    return np.ascontiguousarray(places).view(np.uint64)
