"""Structs as steps that are compiled once, and messages inside bytes fields, which are structs."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from analytics.wire.columns import (
    Binary,
    Column,
    Fixed,
    Group,
    absent,
    absent_struct,
    default,
    distinct,
    elements_of,
    invalid_rows,
    scatter,
    struct_type,
    take,
)
from analytics.wire.cursor import Cursor, Reason, UnknownTags, read_unsigned_varint
from analytics.wire.fields import Content, FixedReader, Reader, column_of
from schemas.model import FIELDS_WRITTEN

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from numpy.typing import NDArray

    from analytics.wire.columns import Mask
    from analytics.wire.cursor import ByteBuffer, Journal
    from analytics.wire.field_walk import FieldWalk
    from schemas.model import Embedded, EmbeddedUse, Field, Struct

# Messages inside bytes fields: the consumer protocol's subscription and assignment.
#
# Bytes that do not parse give null, never a failure: they are the client's, not the broker's
# (``ConsumerProtocol`` reads a version above its newest as its newest and ignores what follows).
#
# Some clients leave out the last fields of the version they name. Where the bytes end exactly
# behind a field, the others have their defaults, and ``fields_written`` says how many were there.
# Bytes that end anywhere else are null.

_VERSION = np.dtype(">i2")


@dataclass(frozen=True)
class EmbeddedReader:
    """Parses a bytes column where its condition holds.

    Attributes:
        use: The condition.
        message: What is parsed.
        readers: Of all fields, by version.
        early: Of bytes that end early, by version: the reader of the most fields first.
    """

    use: EmbeddedUse
    message: Embedded
    readers: Mapping[int, StructReader]
    early: Mapping[int, Sequence[StructReader]]

    def read(self, journal: Journal, record: NDArray[np.int64], column: Binary) -> Column:
        """Return the parsed messages, null where there is none.

        Args:
            journal: Where the strings are that the condition is about.
            record: Of each row of the column.
            column: The bytes.
        """
        rows = np.flatnonzero((column.length > 0) & self._is_used(journal, record, column.buffer))
        parsed = [(rows[part], group) for part, group in self._parse(column, rows)]
        return scatter(column.size, absent_struct(self.message.row, column.buffer, 1), parsed)

    def _is_used(
        self, journal: Journal, record: NDArray[np.int64], buffer: ByteBuffer
    ) -> NDArray[np.bool_]:
        if self.use.when_field is None or self.use.when_value is None:
            return np.ones(record.size, np.bool_)
        condition = journal.scope[self.use.when_field]
        expected = self.use.when_value.encode()
        start, length = condition.start[record], condition.length[record]
        wanted = length == len(expected)
        content = buffer.gather(np.dtype((np.void, len(expected))), np.where(wanted, start, 0))
        same = content.view(np.uint8).reshape(-1, len(expected)) == np.frombuffer(expected, "u1")
        matches: NDArray[np.bool_] = wanted & same.all(axis=1)
        return matches

    def _parse(
        self, column: Binary, rows: NDArray[np.int64]
    ) -> list[tuple[NDArray[np.int64], Column]]:
        cursor = Cursor.over(column.buffer, column.start[rows], column.length[rows])
        version = cursor.gather(_VERSION, Reason.TRUNCATED, "version").astype(np.int64)
        version = np.minimum(version, self.message.versions.last)
        known = (version >= self.message.versions.first) & ~cursor.dead
        return [
            part
            for number in distinct(version[known])
            for part in self._parse_version(
                cursor, number, np.flatnonzero(known & (version == number))
            )
        ]

    def _parse_version(
        self, cursor: Cursor, version: int, rows: NDArray[np.int64]
    ) -> Iterator[tuple[NDArray[np.int64], Column]]:
        must_end = not self.message.lenient_tail
        found, group, rows = _read(cursor, rows, self.readers[version], must_end=must_end)
        yield self._marked(found, group, None)
        for reader in self.early.get(version, ()):
            if not rows.size:
                return
            found, group, rows = _read(cursor, rows, reader, must_end=True)
            whole = self._completed(group, version, cursor.buffer)
            yield self._marked(found, whole, len(group.columns))

    def _completed(self, group: Group, version: int, buffer: ByteBuffer) -> Group:
        """Give the fields that are missing their defaults, as if the message had not ended."""
        columns = dict(group.columns)
        for each in self.message.struct.fields:
            if each.column not in columns and each.is_in(version, None):
                one = default(each, version, buffer)
                columns[each.column] = take(one, np.zeros(group.size, np.int64))
            elif each.column not in columns:
                columns[each.column] = absent(each, buffer, group.size)
        return Group(columns, group.size)

    def _marked(
        self, rows: NDArray[np.int64], group: Group, fields_written: int | None
    ) -> tuple[NDArray[np.int64], Column]:
        """Say how many fields were written; leave out messages with text that is no UTF-8."""
        if self.message.may_end_early:
            mark = np.full(group.size, fields_written or 0, np.int32)
            is_early = np.full(group.size, fields_written is not None)
            group.columns[FIELDS_WRITTEN.column] = Fixed(mark, is_early)
        broken = invalid_rows(group, struct_type(self.message.row))
        if not broken.any():
            return rows, group
        # A null over text that is no UTF-8 would still fail the whole record.
        readable = np.flatnonzero(~broken)
        return rows[readable], take(group, readable)


def _read(
    cursor: Cursor, rows: NDArray[np.int64], reader: StructReader, *, must_end: bool
) -> tuple[NDArray[np.int64], Group, NDArray[np.int64]]:
    """Read rows; return those that can be read, what they hold, and the others."""
    part = cursor.select(rows)
    group = reader.read(part)
    if must_end:
        part.require_exhausted(Reason.TRAILING_BYTES, "")
    dead = part.dead
    if not dead.any():
        return rows, group, rows[:0]
    living = take(group, np.flatnonzero(~dead))
    assert isinstance(living, Group)
    return rows[~dead], living, rows[dead]


# Structs: a list of steps compiled once from (struct, version, layout).

# The tagged section that ends every struct of a flexible version.

Parts = dict[int, list[tuple["NDArray[np.int64]", Column]]]
_LEAST_TAG = 2


@dataclass(frozen=True)
class TaggedField:
    """A field with a tag and the reader of its payload."""

    each: Field
    reader: Reader


@dataclass(frozen=True)
class TagSection:
    """Reads the section: known tags become columns, unknown ones are kept raw."""

    path: str
    version: int
    fields: Mapping[int, TaggedField]

    def read(self, cursor: Cursor, columns: dict[str, Column]) -> None:
        """Read the section of every row; a tag that was not written holds its default."""
        count = read_unsigned_varint(cursor, self._at("tags"))
        parts: Parts = {tag: [] for tag in self.fields}
        if count.any():
            too_many = count * _LEAST_TAG > cursor.remaining
            if too_many.any():
                cursor.fail(too_many & ~cursor.dead, Reason.LENGTH_BEYOND_END, self._at("tags"))
            rows = np.flatnonzero((count > 0) & ~cursor.dead)
            step = 0
            while rows.size:
                part = cursor.select(rows)
                self._read_one(part, rows, parts)
                cursor.rejoin(rows, part)
                step += 1
                rows = rows[(count[rows] > step) & ~part.dead]
        for tag, tagged in self.fields.items():
            unwritten = default(tagged.each, self.version, cursor.buffer)
            columns[tagged.each.column] = scatter(cursor.size, unwritten, parts[tag])

    def _at(self, name: str) -> str:
        return f"{self.path}.{name}" if self.path else name

    def _read_one(self, cursor: Cursor, rows: NDArray[np.int64], parts: Parts) -> None:
        tag = read_unsigned_varint(cursor, self._at("tag"))
        size = read_unsigned_varint(cursor, self._at("tag size"))
        start = cursor.claim(size, Reason.LENGTH_BEYOND_END, self._at("tag size"))
        dead = cursor.dead
        for number in distinct(tag[~dead]):
            chosen = np.flatnonzero((tag == number) & ~dead)
            tagged = self.fields.get(number)
            if tagged is None:
                self._keep(cursor, chosen, number, start[chosen], size[chosen])
            else:
                column = self._payload(cursor, tagged, chosen, start[chosen], size[chosen])
                parts[number].append((rows[chosen], column))

    def _payload(
        self,
        cursor: Cursor,
        tagged: TaggedField,
        chosen: NDArray[np.int64],
        start: NDArray[np.int64],
        size: NDArray[np.int64],
    ) -> Column:
        after, end = cursor.position[chosen], cursor.end[chosen]
        part = cursor.select(chosen)
        part.position, part.end = start, start + size
        column = tagged.reader.read(part)
        part.require_exhausted(Reason.TRAILING_BYTES, self._at(tagged.each.name))
        living = ~part.dead
        part.position, part.end = np.where(living, after, 0), np.where(living, end, part.end)
        cursor.rejoin(chosen, part)
        return column

    def _keep(
        self,
        cursor: Cursor,
        chosen: NDArray[np.int64],
        tag: int,
        start: NDArray[np.int64],
        size: NDArray[np.int64],
    ) -> None:
        tags = np.full(chosen.size, tag, np.int64)
        cursor.journal.unknown_tags.append(
            UnknownTags(cursor.row[chosen], self.path, tags, start, size)
        )


class Step(Protocol):
    """Reads some fields of every row, one after the other."""

    def read(self, cursor: Cursor, columns: dict[str, Column]) -> None:
        """Add the fields' columns and move every position past them."""


@dataclass(frozen=True)
class FixedRun:
    """Neighbouring fixed-width fields, and the length of what follows: one gather for them all."""

    fields: tuple[tuple[str, FixedReader], ...]
    then: tuple[str, Content] | None
    dtype: np.dtype[Any]

    def read(self, cursor: Cursor, columns: dict[str, Column]) -> None:
        """Read the run; where it does not fit, field by field, so that the failure is named."""
        raw = cursor.gather_if_all_have(self.dtype)
        if raw is None:
            self._one_by_one(cursor, columns)
            return
        for place, (name, reader) in enumerate(self.fields):
            columns[name] = column_of(raw[f"f{place}"], reader.wire_type, reader.column_type)
        if self.then is not None:
            name, content = self.then
            columns[name] = content.read(cursor, raw["length"].astype(np.int64))

    def _one_by_one(self, cursor: Cursor, columns: dict[str, Column]) -> None:
        for name, reader in self.fields:
            columns[name] = reader.read(cursor)
        if self.then is not None:
            name, content = self.then
            length = cursor.gather(self.dtype["length"], Reason.TRUNCATED, content.path)
            columns[name] = content.read(cursor, length.astype(np.int64))


@dataclass(frozen=True)
class SingleField:
    """One field that brings its own length or flag."""

    name: str
    reader: Reader

    def read(self, cursor: Cursor, columns: dict[str, Column]) -> None:
        """Read the field."""
        columns[self.name] = self.reader.read(cursor)


@dataclass(frozen=True)
class StructReader:
    """Reads a struct in one version and layout; the result has the columns of all versions.

    ``steps`` are all there is to do; where ``walk`` succeeds, ``rest`` is what it leaves of them.
    """

    struct: Struct
    steps: tuple[Step, ...]
    embedded: Mapping[str, EmbeddedReader]
    least: int
    walk: FieldWalk | None = None
    rest: tuple[Step, ...] = ()

    def read(self, cursor: Cursor) -> Group:
        """Read every field of every row."""
        walked = None if self.walk is None else self.walk.read(cursor)
        columns: dict[str, Column] = {} if walked is None else walked
        for step in self.steps if walked is None else self.rest:
            step.read(cursor, columns)
        return self._complete(cursor, columns)

    def read_among_nulls(self, cursor: Cursor, null: Mask) -> Group | None:
        """Read every field of the rows that are not null, where one walk does it; else None."""
        if self.walk is None or self.rest or self.embedded:
            return None
        columns = self.walk.read(cursor, null)
        return None if columns is None else replace(self._complete(cursor, columns), valid=~null)

    def _complete(self, cursor: Cursor, columns: dict[str, Column]) -> Group:
        complete: dict[str, Column] = {}
        for each in self.struct.fields:
            column = columns.get(each.column)
            if column is None:
                column = absent(each, cursor.buffer, cursor.size)
            complete[each.column] = column
            reader = self.embedded.get(each.column)
            if reader is not None and isinstance(column, Binary):
                complete[f"{each.column}_decoded"] = reader.read(cursor.journal, cursor.row, column)
        return Group(complete, cursor.size)


@dataclass(frozen=True)
class FlatStruct:
    """Elements of one width: fixed fields, and in flexible versions an empty tag section."""

    reader: StructReader
    dtype: np.dtype[Any]
    flexible: bool

    def read(self, cursor: Cursor, count: NDArray[np.int64]) -> Group | None:
        """Read all elements of all rows at once; None if some element has tagged fields.

        The caller has made sure that the elements, without tagged fields, fit.
        """
        width = self.dtype.itemsize
        where = np.repeat(cursor.position, count)
        where += elements_of(np.zeros_like(count), count) * width
        raw = cursor.buffer.gather(self.dtype, where)
        if self.flexible and raw["tags"].any():
            return None
        cursor.claim(count * width, Reason.LENGTH_BEYOND_END, "")
        run = self.reader.steps[0]
        columns: dict[str, Column] = {}
        if isinstance(run, FixedRun):
            for place, (name, field) in enumerate(run.fields):
                columns[name] = column_of(raw[f"f{place}"], field.wire_type, field.column_type)
        union = absent_struct(self.reader.struct, cursor.buffer, raw.size).columns
        return Group({**union, **columns}, raw.size)
