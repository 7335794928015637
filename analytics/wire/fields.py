"""Readers of fields, single ones and arrays: each reads its field for every row of a cursor."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, NamedTuple, Protocol

import numpy as np

from analytics.wire.columns import (
    Binary,
    Column,
    Fixed,
    Group,
    Repeated,
    absent,
    concat,
    elements_of,
    scatter,
    starts_of,
    take,
)
from analytics.wire.cursor import (
    COLUMN_DTYPES,
    WIRE_DTYPES,
    Cursor,
    Journal,
    Reason,
    checked_length,
    claim_content,
    read_byte,
    read_compact_length,
)

if TYPE_CHECKING:
    from collections.abc import Mapping

    from numpy.typing import NDArray

    from analytics.wire.structs import EmbeddedReader, FlatStruct
    from schemas.model import Field

# Readers of single fields: each reads its field for every row of a cursor.


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


# Arrays of variable-width elements, in lock-step: the k-th element of every row that has one.
#
# In lock-step an array costs one round per element, which is nothing while many rows share the
# round and far too much for one row with a million elements. There the element is read at *every*
# byte of a window at once, which gives each byte's successor, and the chain of elements is then a
# walk over that table.

# From this many elements on, rows that are this few are read along the chain of their elements.
LONG = 64
FEW = 4

_WINDOW = 1 << 16
_BROKEN = -1


class Step(NamedTuple):
    """Elements read together: their rows, their numbers within the row, their columns."""

    rows: NDArray[np.int64]
    number: NDArray[np.int64]
    column: Column


@dataclass(frozen=True)
class ArrayContent:
    """An array of strings or structs.

    ``flat`` reads elements that, without tagged fields, all have one width; where a tag is there
    after all, the rows go in lock-step like the others. ``is_simple`` says that an element holds
    no array, so that it can be read at any byte in bounded time. ``messages`` parse bytes fields of
    the elements, of all of them at once: ``item`` leaves them alone.
    """

    each: Field
    path: str
    prefix: np.dtype[np.signedinteger] | None
    nullable: bool
    item: Reader
    flat: FlatStruct | None = None
    is_simple: bool = True
    messages: Mapping[str, EmbeddedReader] = field(default_factory=dict)

    def read(self, cursor: Cursor, length: NDArray[np.int64]) -> Repeated:
        """Read count elements of every row; a count that cannot fit fails at once."""
        length = checked_length(cursor, length, self.path, nullable=self.nullable)
        too_many = length * self.item.least > cursor.remaining
        if too_many.any():
            cursor.fail(too_many & ~cursor.dead, Reason.LENGTH_BEYOND_END, self.path)
        if not cursor.sound:
            length = np.where(cursor.dead, 0, length)
        count = np.maximum(length, 0)
        items: Column | None = self.flat.read(cursor, count) if self.flat is not None else None
        if items is None:
            length, items = self._in_lock_step(cursor, length)
        return Repeated(length, self._with_messages(cursor, length, items))

    def _with_messages(self, cursor: Cursor, length: NDArray[np.int64], items: Column) -> Column:
        if not self.messages or not isinstance(items, Group):
            return items
        record = np.repeat(cursor.row, np.maximum(length, 0))
        columns = dict(items.columns)
        for name, reader in self.messages.items():
            content = columns[name]
            if isinstance(content, Binary):
                columns[f"{name}_decoded"] = reader.read(cursor.journal, record, content)
        return replace(items, columns=columns)

    def _in_lock_step(
        self, cursor: Cursor, length: NDArray[np.int64]
    ) -> tuple[NDArray[np.int64], Column]:
        rows = np.flatnonzero(length > 0)
        steps: list[Step] = []
        done = np.zeros(length.size, np.int64)
        while rows.size:
            if len(steps) >= LONG and rows.size <= FEW and self.is_simple:
                for row in rows.tolist():
                    self._along_chain(cursor, row, int(length[row] - done[row]), done, steps)
            # Where a chain broke off, this is the element that fails, and says why.
            rows = rows[(length[rows] > done[rows]) & ~cursor.dead[rows]]
            part = cursor.select(rows)
            column = self.item.read(part)
            cursor.rejoin(rows, part)
            steps.append(Step(rows, done[rows], column))
            done[rows] += 1
            rows = rows[(length[rows] > done[rows]) & ~part.dead]
        return self._in_order(cursor, length, steps)

    def _along_chain(
        self,
        cursor: Cursor,
        row: int,
        count: int,
        done: NDArray[np.int64],
        steps: list[Step],
    ) -> None:
        starts, after = _element_starts(cursor, row, count, self.item)
        if not starts.size:
            return
        owner = np.full(starts.size, row)
        part = cursor.select(owner)
        part.position, part.end = starts, np.append(starts[1:], after)
        steps.append(Step(owner, done[row] + np.arange(starts.size), self.item.read(part)))
        cursor.position[row] = after
        done[row] += starts.size

    def _in_order(
        self,
        cursor: Cursor,
        length: NDArray[np.int64],
        steps: list[Step],
    ) -> tuple[NDArray[np.int64], Column]:
        """Put elements that were read step by step into row order, those of dead rows left out."""
        if not steps:
            item = absent(self.each, cursor.buffer, 0)
            return length, item.items if isinstance(item, Repeated) else item
        dead = cursor.dead
        length = np.where(dead, 0, length) if dead.any() else length
        items = concat([step.column for step in steps])
        if len(steps) == 1 and not dead.any():
            return length, items
        row = np.concatenate([step.rows for step in steps])
        number = np.concatenate([step.number for step in steps])
        kept = np.flatnonzero(~dead[row])
        place = (starts_of(length)[row] + number)[kept]
        order = np.empty(kept.size, np.int64)
        order[place] = kept
        return length, take(items, order)


def _element_starts(
    cursor: Cursor, row: int, count: int, item: Reader
) -> tuple[NDArray[np.int64], int]:
    """Find where up to ``count`` elements of one row begin, from its position on.

    Returns:
        The starts of the elements that can be read, and the position behind the last of them.
        Fewer than ``count`` starts: the next element breaks a bound.
    """
    position, end = int(cursor.position[row]), int(cursor.end[row])
    starts: list[int] = []
    while len(starts) < count and position < end:
        base = position
        successor = _successors(cursor, base, min(base + _WINDOW, end), end, item)
        while len(starts) < count and position - base < len(successor):
            after = successor[position - base]
            if after == _BROKEN:
                return np.array(starts, np.int64), position
            starts.append(position)
            position = after
    return np.array(starts, np.int64), position


def _successors(cursor: Cursor, first: int, last: int, end: int, item: Reader) -> list[int]:
    """Where an element that began at each byte of a window would end."""
    size = last - first
    everywhere = Cursor(
        cursor.buffer,
        np.arange(first, last, dtype=np.int64),
        np.full(size, end, np.int64),
        np.arange(size, dtype=np.int64),
        Journal.of(size),
    )
    item.read(everywhere)
    successors: list[int] = np.where(everywhere.dead, _BROKEN, everywhere.position).tolist()
    return successors
