"""Readers of single fields: each reads its field for every row of a cursor."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

import numpy as np

from analytics.wire.columns import Binary, Column, Fixed, Repeated, elements_of, scatter
from analytics.wire.cursor import Reason
from analytics.wire.defaults import absent
from analytics.wire.primitives import (
    COLUMN_DTYPES,
    WIRE_DTYPES,
    checked_length,
    claim_content,
    read_byte,
    read_compact_length,
)

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from analytics.wire.cursor import Cursor
    from schemas.model import Field


class Reader(Protocol):
    """Reads one field, or one element of an array."""

    @property
    def least(self) -> int:
        """Fewest bytes it can take."""

    def read(self, cursor: Cursor) -> Column:
        """Read the field of every row and move every position past it."""


class Content(Protocol):
    """Reads what follows a length: text, bytes or the elements of an array."""

    @property
    def path(self) -> str:
        """Where the field is in its record."""

    @property
    def prefix(self) -> np.dtype[np.signedinteger] | None:
        """Type of the length before it; None is a varint."""

    def read(self, cursor: Cursor, length: NDArray[np.int64]) -> Column:
        """Read the content of every row, given its stored length (-1 is null)."""


def column_of(raw: NDArray[np.generic], wire_type: str, column_type: str) -> Fixed:
    """Turn gathered wire values into native ones of the column's type."""
    if wire_type == "bool":
        return Fixed(np.ascontiguousarray(raw).view(np.uint8) != 0)
    return Fixed(np.ascontiguousarray(raw.astype(COLUMN_DTYPES[column_type], copy=False)))


@dataclass(frozen=True)
class FixedReader:
    """A number, boolean or uuid."""

    path: str
    wire_type: str
    column_type: str

    @property
    def least(self) -> int:
        """Bytes it takes."""
        return WIRE_DTYPES[self.wire_type].itemsize

    def read(self, cursor: Cursor) -> Fixed:
        """Read one value of every row."""
        raw = cursor.gather(WIRE_DTYPES[self.wire_type], Reason.TRUNCATED, self.path)
        return column_of(raw, self.wire_type, self.column_type)


@dataclass(frozen=True)
class PrefixedReader:
    """A field with its own length before it: fixed-width, or a varint in compact types."""

    content: Content
    least: int

    def read(self, cursor: Cursor) -> Column:
        """Read the length, then the content."""
        if self.content.prefix is None:
            length = read_compact_length(cursor, self.content.path)
        else:
            raw = cursor.gather(self.content.prefix, Reason.TRUNCATED, self.content.path)
            length = raw.astype(np.int64)
        return self.content.read(cursor, length)


@dataclass(frozen=True)
class TextContent:
    """A string or bytes."""

    path: str
    prefix: np.dtype[np.signedinteger] | None
    nullable: bool
    remembered_as: str | None = None

    def read(self, cursor: Cursor, length: NDArray[np.int64]) -> Binary:
        """Claim the spans; nothing is copied yet."""
        length = checked_length(cursor, length, self.path, nullable=self.nullable)
        start, length = claim_content(cursor, length, self.path)
        return self.remembered(cursor, Binary(cursor.buffer, start, length))

    def remembered(self, cursor: Cursor, column: Binary) -> Binary:
        """Let deeper fields see the column where they depend on it, and return it."""
        if self.remembered_as is not None:
            cursor.journal.scope[self.remembered_as] = column
        return column


@dataclass(frozen=True)
class NullableStructReader:
    """A struct behind one signed byte: negative is null; in a tagged field zero is null too."""

    each: Field
    path: str
    struct: Reader
    least: int = 1

    def read(self, cursor: Cursor) -> Column:
        """Read the struct of the rows that have one."""
        least_flag = 0 if self.each.tag is None else 1
        present = np.flatnonzero((read_byte(cursor, self.path) >= least_flag) & ~cursor.dead)
        part = cursor.select(present)
        column = self.struct.read(part)
        cursor.rejoin(present, part)
        return scatter(cursor.size, absent(self.each, cursor.buffer, 1), [(present, column)])


@dataclass(frozen=True)
class FixedArrayContent:
    """An array whose elements are numbers: all of them are read at once."""

    path: str
    prefix: np.dtype[np.signedinteger] | None
    nullable: bool
    wire_type: str
    column_type: str

    def read(self, cursor: Cursor, length: NDArray[np.int64]) -> Repeated:
        """Read count elements of every row."""
        length = checked_length(cursor, length, self.path, nullable=self.nullable)
        count = np.maximum(length, 0)
        dtype = WIRE_DTYPES[self.wire_type]
        start = cursor.claim(count * dtype.itemsize, Reason.LENGTH_BEYOND_END, self.path)
        if not cursor.sound:
            dead = cursor.dead
            count, length = np.where(dead, 0, count), np.where(dead, 0, length)
        where = np.repeat(start, count)
        where += elements_of(np.zeros_like(count), count) * dtype.itemsize
        raw = cursor.buffer.gather(dtype, where)
        return Repeated(length, column_of(raw, self.wire_type, self.column_type))
